//! Lists a folder from inside a sandbox, to show the user how little a server without grants can access.

use super::{InspectError, Inspection, StartedAlone, slow, start_alone};
use crate::named_server::named_server;
use ironcurtain_config::Servers;
use ironcurtain_mcp::wire::Input;
use ironcurtain_server::process::{LoneProcess, ServerStderr};
use ironcurtain_visible as visible;
use serde_json::json;
use std::path::Path;
use tokio::io::AsyncReadExt;

/// Program that lists the folder, and name of its server.
const PROGRAM: &str = "ls";

/// Maximum number of bytes to read from the program's output.
const MAX_COUNT: usize = 16 * 1024;

/// Result of listing a folder from inside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Names that the program listed.
    pub seen: Vec<String>,
    /// Error message of the program, or an empty string.
    pub complaint: String,
}

/// Lists a folder from inside a sandbox in which only `shown` is visible.
///
/// # Errors
/// Returns an [`InspectError`] if the sandbox cannot be created or the program does not exit in time.
pub async fn list_folder(
    inspection: &Inspection,
    folder: &Path,
    shown: Option<&Path>,
) -> Result<FolderListing, InspectError> {
    inspection.home.prepare()?;
    let filesystem = json!({ "allowRead": shown.into_iter().collect::<Vec<_>>() });
    let sandbox = json!({ "view": "roots", "filesystem": filesystem });
    let entry = json!({ "command": PROGRAM, "args": ["-A", "--", folder], "sandbox": sandbox });
    let text = json!({ PROGRAM: entry }).to_string();
    let servers = Servers::parse(&text, Path::new("mcp-servers.json"), &inspection.home.person)?;
    let server = named_server(&servers, PROGRAM)?;
    let StartedAlone { lone, scratch, .. } = start_alone(inspection, &servers, server).await?;
    let LoneProcess { process, watch } = lone;
    let read = async { tokio::join!(whole(process.stdout), complaint(process.stderr)) };
    let said = tokio::time::timeout(inspection.patience, read).await;
    drop((process.stdin, process.hold));
    drop((watch, scratch));
    let (seen, complaint) = said.map_err(|_| slow(inspection, PROGRAM, String::new()))?;
    let seen = seen.lines().map(visible::line).collect();
    Ok(FolderListing { seen, complaint: visible::line(complaint.trim()) })
}

async fn complaint(mut stderr: ServerStderr) -> String {
    let mut kept = Vec::new();
    while let Some(text) = stderr.next().await {
        kept.extend(text);
        if kept.len() > MAX_COUNT {
            break;
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

async fn whole(mut input: Input) -> String {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 4096]);
    while let Ok(length @ 1..) = input.read(&mut piece).await {
        kept.extend_from_slice(piece.get(..length).unwrap_or_default());
        if kept.len() > MAX_COUNT {
            break;
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
