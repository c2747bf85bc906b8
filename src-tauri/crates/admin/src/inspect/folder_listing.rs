//! Lists a folder from inside a sandbox, to show the user how little a server without grants can access.

use super::{InspectError, Inspection, StandaloneServer, start_standalone, timeout_error};
use crate::named_server::named_server;
use ironcurtain_config::Servers;
use ironcurtain_mcp::wire::Input;
use ironcurtain_server::process::{ServerStderr, StandaloneProcess};
use ironcurtain_visible as visible;
use serde_json::json;
use std::path::Path;
use tokio::io::AsyncReadExt;

/// Program that lists the folder, and name of its server.
const PROGRAM: &str = "ls";

/// Maximum number of bytes to read from the program's output.
const MAX_LEN: usize = 16 * 1024;

/// Result of listing a folder from inside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Names that the program listed.
    pub names: Vec<String>,
    /// Error message of the program, or an empty string.
    pub stderr: String,
}

/// Lists a folder from inside a sandbox in which only `readable` is visible.
///
/// # Errors
/// Returns an [`InspectError`] if the sandbox cannot be created or the program does not exit in time.
pub async fn list_folder(
    inspection: &Inspection,
    folder: &Path,
    readable: Option<&Path>,
) -> Result<FolderListing, InspectError> {
    inspection.home.prepare()?;
    let filesystem = json!({ "allowRead": readable.into_iter().collect::<Vec<_>>() });
    let sandbox = json!({ "view": "roots", "filesystem": filesystem });
    let entry = json!({ "command": PROGRAM, "args": ["-A", "--", folder], "sandbox": sandbox });
    let text = json!({ PROGRAM: entry }).to_string();
    let servers = Servers::parse(&text, Path::new("mcp-servers.json"), &inspection.home.user_home)?;
    let server = named_server(&servers, PROGRAM)?;
    let StandaloneServer { process, scratch, .. } = start_standalone(inspection, &servers, server).await?;
    let StandaloneProcess { process, watch } = process;
    let read = async { tokio::join!(read_output(process.stdout), read_stderr(process.stderr)) };
    let output = tokio::time::timeout(inspection.timeout, read).await;
    drop((process.stdin, process.guard));
    drop((watch, scratch));
    let (names, stderr) = output.map_err(|_| timeout_error(inspection, PROGRAM, String::new()))?;
    let names = names.lines().map(visible::line).collect();
    Ok(FolderListing { names, stderr: visible::line(stderr.trim()) })
}

async fn read_stderr(mut stderr: ServerStderr) -> String {
    let mut text = Vec::new();
    while let Some(chunk) = stderr.next().await {
        text.extend(chunk);
        if text.len() > MAX_LEN {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

async fn read_output(mut input: Input) -> String {
    let (mut text, mut chunk) = (Vec::new(), vec![0; 4096]);
    while let Ok(length @ 1..) = input.read(&mut chunk).await {
        text.extend_from_slice(chunk.get(..length).unwrap_or_default());
        if text.len() > MAX_LEN {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
