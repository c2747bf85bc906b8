//! Commands for deciding what happens to the grants of a server whose program has changed.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use crate::backend::Trusted;
use ironcurtain_admin::identity::{IdentityChangeError, SuspendedServer};
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Granted, StandingGrant};
use ironcurtain_policy::GrantKind;
use ironcurtain_protocol::Request;
use ironcurtain_visible as visible;
use serde::Serialize;
use std::path::Path;

/// Server that now starts a different program, and the state stored under its name for the previous program.
#[derive(Debug, Serialize)]
pub(super) struct SuspendedRow {
    /// Description of the previous program, or `None` if it is unknown.
    before: Option<String>,
    now: String,
    change: String,
    /// Sentences about the access that the grants allow, most dangerous first.
    grants: Vec<String>,
    data: Option<String>,
    annotated: usize,
    secrets: Vec<String>,
    /// Identity of the displayed program. The decision applies to this program.
    found: String,
}

/// Keeps the grants for the new program, or revokes them and sets the server's other data aside. `found` is the
/// identity of the displayed program.
pub(super) async fn decide_identity(
    state: &AppState,
    server: String,
    found: String,
    keep: bool,
) -> Result<String, CommandError> {
    let Trusted { home, daemon, .. } = trusted(state)?;
    let shown = move || {
        let suspended = SuspendedServer::named(&home, &server)?;
        match suspended.current_identity() == found {
            true => Ok(suspended),
            false => Err(IdentityChangeError::Changed(server)),
        }
    };
    let suspended = run_blocking(shown).await?;
    if keep {
        let name = visible::line(&suspended.name);
        run_blocking(move || suspended.keep_state()).await?;
        daemon.apply_server_decision().await;
        return Ok(format!("{name} keeps its permissions. Restart it in your agent."));
    }
    let noted_tools = suspended.stored_state.annotated;
    let (noted, name) = (suspended.clone(), visible::line(&suspended.name));
    let file = run_blocking(move || noted.write_inventory()).await?;
    for grant in &suspended.stored_state.grants {
        // Ignores the error: a grant that could not be revoked causes an error below.
        let _ = state.backend.request(Request::Revoke { grant: grant.id.clone() }).await;
    }
    run_blocking(move || suspended.start_afresh()).await?;
    daemon.apply_server_decision().await;
    let file = visible::path(&file.display().to_string());
    let next = match noted_tools {
        0 => "Restart it in your agent.",
        _ => "Review its tools below, then restart it in your agent.",
    };
    Ok(format!(
        "{name} starts without permissions or data. {next} Its previous permissions and data are listed in {file}."
    ))
}

impl SuspendedRow {
    pub(super) fn new(home: &Home, one: &SuspendedServer) -> Self {
        let mut grants: Vec<_> = one.stored_state.grants.iter().collect();
        grants.sort_by_key(|grant| severity(grant));
        Self {
            before: one.previous_program().as_deref().map(visible::line),
            now: visible::line(&one.current_program()),
            change: visible::line(&one.change),
            grants: grants.into_iter().map(|grant| allows(home, grant)).collect(),
            data: one.stored_state.data.as_ref().map(|data| display_path(home, &data.display().to_string())),
            annotated: one.stored_state.annotated,
            secrets: one.stored_state.secrets.iter().map(|secret| visible::line(secret)).collect(),
            found: one.current_identity().to_owned(),
        }
    }
}

/// Returns a sort key that orders grants by how much harm a hostile program could do with them. Grants to change files
/// come first.
fn severity(grant: &StandingGrant) -> u8 {
    match &grant.what {
        Granted::Files(files) if files.access.write || files.access.delete => 0,
        Granted::Tool(_) => 1,
        Granted::Host(_) => 2,
        Granted::Files(_) => 3,
    }
}

/// Formats a path, with `~` for the home directory.
fn display_path(home: &Home, path: &str) -> String {
    let below =
        Path::new(path).strip_prefix(&home.user_home).ok().filter(|below| !below.as_os_str().is_empty());
    visible::path(&below.map_or_else(|| path.to_owned(), |below| format!("~/{}", below.display())))
}

/// Returns a sentence about the access that a grant allows, without the client's name.
fn allows(home: &Home, grant: &StandingGrant) -> String {
    let what = visible::path(&grant.what.to_string());
    match &grant.what {
        Granted::Files(files) => {
            let access = files.access;
            let words = [(access.read, "read"), (access.write, "change"), (access.delete, "delete")];
            let words: Vec<&str> = words.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
            let reach = if files.kind == GrantKind::Tree { "everything in " } else { "" };
            format!("{} {reach}{}", words.join(", "), display_path(home, files.path.as_str()))
        }
        Granted::Host(_) => format!("send data to {what}"),
        Granted::Tool(_) => format!("use {what}"),
    }
}
