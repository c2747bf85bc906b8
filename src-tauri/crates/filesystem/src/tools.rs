//! The 14 tools of the filesystem server.
//!
//! - Tools access the disk only through a [`ResolvedPath`].
//! - Long operations stop when the call is cancelled or an allowed directory is revoked.

mod arguments;
mod catalogue;
mod collate;
mod diff;
mod edit;
mod glob;
mod info;
mod list;
mod media;
mod read;
mod transfer;
mod walk;
mod write;

use rmcp::model::{ContentBlock, JsonObject};
use serde_json::Value;

pub(crate) use self::catalogue::catalogue;

use self::arguments::Arguments;
use crate::allowed_directories::AllowedDirectories;
use crate::error::ToolError;
use crate::resolved_path::ResolvedPath;

/// Result of a tool call.
pub(crate) enum Answer {
    /// Plain text.
    Text(String),
    /// An image, audio or other data, as a content block and as structured content.
    Media { block: Box<ContentBlock>, data: Value },
}

/// Context of a tool call.
pub(crate) struct Call<'a> {
    /// Directories that the call is allowed to access.
    pub(crate) allowed: &'a AllowedDirectories,
    /// Returns `true` once the client has cancelled the call.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl Call<'_> {
    fn resolve(&self, path: &str) -> Result<ResolvedPath, ToolError> {
        self.allowed.resolve(path)
    }

    /// Returns an error if the call was cancelled or an allowed directory was revoked.
    fn check(&self) -> Result<(), ToolError> {
        if self.allowed.is_narrowed() || (self.cancelled)() { Err(ToolError::Cancelled) } else { Ok(()) }
    }
}

/// Runs the tool with this name.
pub(crate) fn run(name: &str, values: JsonObject, call: &Call<'_>) -> Result<Answer, ToolError> {
    let arguments = Arguments::new(name, values);
    let text = match name {
        "read_file" | "read_text_file" => read::text(&arguments, call),
        "read_media_file" => return media::read(&arguments, call),
        "read_multiple_files" => read::multiple(&arguments, call),
        "write_file" => write::file(&arguments, call),
        "edit_file" => edit::file(&arguments, call),
        "create_directory" => write::directory(&arguments, call),
        "list_directory" => list::names(&arguments, call),
        "list_directory_with_sizes" => list::sizes(&arguments, call),
        "directory_tree" => walk::tree(&arguments, call),
        "move_file" => transfer::move_file(&arguments, call),
        "search_files" => walk::search(&arguments, call),
        "get_file_info" => info::file(&arguments, call),
        "list_allowed_directories" => Ok(allowed_directories(call.allowed)),
        _ => Err(ToolError::UnknownTool(name.to_owned())),
    };
    text.map(Answer::Text)
}

fn allowed_directories(allowed: &AllowedDirectories) -> String {
    format!("Allowed directories:\n{}", allowed.directories().collect::<Vec<_>>().join("\n"))
}
