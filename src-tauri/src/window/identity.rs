//! The user's decision about a server's grants after its program changed.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use ironcurtain_admin::identity::{IdentityChangeError, SuspendedServer};
use ironcurtain_daemon::consent::visible;
use ironcurtain_protocol::Request;

/// Keeps the grants for the new program, or sets them aside. `found` is the program that was shown.
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
        // A grant that could not be revoked is refused below.
        let _ = state.backend.request(Request::Revoke { grant: grant.id.clone() }).await;
    }
    aside(move || suspended.start_afresh()).await?;
    let file = visible::path(&file.display().to_string());
    Ok(format!("Set aside, and noted in {file}. Restart the server in your client."))
}
