//! A look at a folder with nothing granted: a plain program looks, in the very sandbox that servers start in.

use super::{InspectError, Inspection, StartedAlone, slow, start_by_itself};
use crate::named_server::named_server;
use ironcurtain_config::Servers;
use ironcurtain_daemon::server::process::{LoneProcess, ServerStderr};
use ironcurtain_mcp::wire::Input;
use ironcurtain_visible as visible;
use serde_json::json;
use std::path::Path;
use tokio::io::AsyncReadExt;

/// The program that looks, and its name as a server.
const PROGRAM: &str = "ls";

/// The most that is read of what it says.
const MOST: usize = 16 * 1024;

/// The words of a program in a sandbox about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The names that it saw in there.
    pub seen: Vec<String>,
    /// Its complaint.
    pub complaint: String,
}

/// Looks at a folder from within a sandbox that shows what is `shown` to it, and nothing else.
///
/// # Errors
/// [`InspectError`], when no sandbox can be made, or nothing is said in time.
pub async fn sight(
    inspection: &Inspection,
    folder: &Path,
    shown: Option<&Path>,
) -> Result<Sight, InspectError> {
    inspection.home.prepare()?;
    let filesystem = json!({ "allowRead": shown.into_iter().collect::<Vec<_>>() });
    let sandbox = json!({ "view": "roots", "filesystem": filesystem });
    let entry = json!({ "command": PROGRAM, "args": ["-A", "--", folder], "sandbox": sandbox });
    let text = json!({ PROGRAM: entry }).to_string();
    let servers = Servers::parse(&text, Path::new("mcp-servers.json"), &inspection.home.person)?;
    let server = named_server(&servers, PROGRAM)?;
    let StartedAlone { lone, scratch, .. } = start_by_itself(inspection, &servers, server).await?;
    let LoneProcess { process, watch } = lone;
    let read = async { tokio::join!(whole(process.stdout), complaint(process.stderr)) };
    let said = tokio::time::timeout(inspection.patience, read).await;
    drop((process.stdin, process.hold));
    drop((watch, scratch));
    let (seen, complaint) = said.map_err(|_| slow(inspection, PROGRAM, String::new()))?;
    let seen = seen.lines().map(visible::line).collect();
    Ok(Sight { seen, complaint: visible::line(complaint.trim()) })
}

async fn complaint(mut stderr: ServerStderr) -> String {
    let mut kept = Vec::new();
    while let Some(text) = stderr.next().await {
        kept.extend(text);
        if kept.len() > MOST {
            break;
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

async fn whole(mut input: Input) -> String {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 4096]);
    while let Ok(length @ 1..) = input.read(&mut piece).await {
        kept.extend_from_slice(piece.get(..length).unwrap_or_default());
        if kept.len() > MOST {
            break;
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
