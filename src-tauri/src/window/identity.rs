//! The decision about what is kept under the name of a server that is another program now.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use crate::backend::Trusted;
use ironcurtain_admin::identity::{IdentityChangeError, SuspendedServer};
use ironcurtain_protocol::Request;
use ironcurtain_visible as visible;

/// Keeps what was shown for the new program, or puts it aside. `found` is the program that was shown.
pub(super) async fn decide_identity(
    state: &AppState,
    server: String,
    found: String,
    keep: bool,
) -> Result<String, CommandError> {
    let Trusted { home, daemon, .. } = trusted(state)?;
    let shown = move || {
        let suspended = SuspendedServer::named(&home, &server)?;
        match suspended.found() == found {
            true => Ok(suspended),
            false => Err(IdentityChangeError::Changed(server)),
        }
    };
    let suspended = aside(shown).await?;
    if keep {
        let name = visible::line(&suspended.name);
        aside(move || suspended.keep()).await?;
        daemon.server_decided().await;
        return Ok(format!("{name} keeps its permissions. Restart it in your agent."));
    }
    let noted_tools = suspended.kept.annotated;
    let (noted, name) = (suspended.clone(), visible::line(&suspended.name));
    let file = aside(move || noted.note_put_aside()).await?;
    for grant in &suspended.kept.grants {
        // One that is left is refused below.
        let _ = state.backend.request(Request::Revoke { grant: grant.id.clone() }).await;
    }
    aside(move || suspended.start_afresh()).await?;
    daemon.server_decided().await;
    let file = visible::path(&file.display().to_string());
    let next = match noted_tools {
        0 => "Restart it in your agent.",
        _ => "Look at its tools below, then restart it in your agent.",
    };
    Ok(format!("{name} starts with nothing. {next} What it had is listed in {file}."))
}
