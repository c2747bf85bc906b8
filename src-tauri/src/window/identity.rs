//! The decision about what is kept under the name of a server that is another program now.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
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
    let home = trusted(state)?.home;
    let shown = move || {
        let suspended = SuspendedServer::named(&home, &server)?;
        match suspended.found() == found {
            true => Ok(suspended),
            false => Err(IdentityChangeError::Changed(server)),
        }
    };
    let suspended = aside(shown).await?;
    if keep {
        aside(move || suspended.keep()).await?;
        return Ok("Kept. Restart the server in your client.".to_owned());
    }
    let noted = suspended.clone();
    let file = aside(move || noted.note_put_aside()).await?;
    for grant in &suspended.kept.grants {
        // One that is left is refused below.
        let _ = state.backend.request(Request::Revoke { grant: grant.id.clone() }).await;
    }
    aside(move || suspended.start_afresh()).await?;
    let file = visible::path(&file.display().to_string());
    Ok(format!("Put aside, and noted in {file}. Restart the server in your client."))
}
