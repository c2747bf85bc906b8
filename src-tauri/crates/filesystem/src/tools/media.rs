//! `read_media_file`: returns a file as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::json;

use super::arguments::Arguments;
use super::{Answer, Call};
use crate::error::ToolError;
use crate::{files, root_uri};

/// Maximum file size in bytes. The base64 encoding of a file of this size has the length of the text limit.
const LIMIT: u64 = files::TEXT_LIMIT / 4 * 3;

pub(super) fn read(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, ToolError> {
    let resolved = call.resolve(arguments.string("path")?)?;
    let mime = mime_type(resolved.path());
    let content = files::read(&resolved, LIMIT, "the file cannot be sent in one piece")?;
    let data = STANDARD.encode(content);
    let answer = if mime.starts_with("image/") {
        Answer::Media {
            data: json!({ "type": "image", "data": data, "mimeType": mime }),
            block: Box::new(ContentBlock::image(data, mime)),
        }
    } else if mime.starts_with("audio/") {
        Answer::Media {
            data: json!({ "type": "audio", "data": data, "mimeType": mime }),
            block: Box::new(ContentBlock::audio(data, mime)),
        }
    } else {
        let uri = root_uri::from_path(resolved.path());
        let resource = json!({ "uri": uri, "mimeType": mime, "blob": data });
        let contents = ResourceContents::blob(data, uri).with_mime_type(mime);
        Answer::Media {
            data: json!({ "type": "resource", "resource": resource }),
            block: Box::new(ContentBlock::resource(contents)),
        }
    };
    Ok(answer)
}

fn mime_type(path: &std::path::Path) -> &'static str {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref().unwrap_or_default() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        _ => "application/octet-stream",
    }
}
