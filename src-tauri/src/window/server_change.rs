//! Commands that remove and restore configured servers, and change their hosts, folders and limits.
//!
//! - A planned change is stored here until the user confirms it, and is written exactly as shown.
//! - INVARIANT: only folders returned by a system picker to this process can be allowed. The page cannot name paths.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::file_picker::Picked;
use super::grants::trusted;
use super::login::end_login;
use ironcurtain_admin::ServerChangeError;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::entry_permissions::{EntryPermission, EntryPermissionChange};
use ironcurtain_admin::limits::{Limit, LimitsChange};
use ironcurtain_admin::removal::{self, DependentEntry, Removal};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_secrets::Logins;
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Planned changes that the user has not confirmed yet.
#[derive(Default)]
pub(super) struct ServerChangeDrafts {
    removal: Mutex<Option<Removal>>,
    opening: Mutex<Option<EntryPermissionChange>>,
    limits: Mutex<Option<LimitsChange>>,
}

/// Planned removal of a server, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct PlannedRemoval {
    name: String,
    entry: String,
    /// Descriptions of the client entries that start the server.
    clients: Vec<String>,
    profiles: Vec<String>,
    data: Option<String>,
}

/// Host or folder that the page requests for a server. A folder is chosen in a picker instead.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum WantedOpening {
    Host { host: String },
    Read,
    Write,
}

/// Planned access to a host or folder, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct PlannedOpening {
    what: String,
    words: String,
}

/// Planned limits, as the page shows them.
#[derive(Debug, Serialize)]
pub(super) struct PlannedLimits {
    differences: Vec<PlannedLimit>,
    diff: String,
}

#[derive(Debug, Serialize)]
struct PlannedLimit {
    looser: bool,
    words: String,
}

pub(super) async fn plan_removal(state: &AppState, name: String) -> Result<PlannedRemoval, CommandError> {
    let trusted = trusted(state)?;
    let removal = run_blocking(move || {
        let survey = Clients::new(trusted.home.clone(), &trusted.programs).map(|all| all.survey());
        Removal::plan(&trusted.home, &survey.unwrap_or_default(), &name)
    })
    .await?;
    let named = |one: &DependentEntry| visible::line(&format!("{} (its entry {})", one.client, one.entry));
    let planned = PlannedRemoval {
        name: visible::line(&removal.name),
        entry: visible::lines(&removal.entry),
        clients: removal.clients.iter().map(named).collect(),
        profiles: removal.profiles.iter().map(|name| visible::line(name)).collect(),
        data: removal.data.as_ref().map(|data| visible::path(&data.display().to_string())),
    };
    *state.server_changes.removal.lock().unwrap_or_else(PoisonError::into_inner) = Some(removal);
    Ok(planned)
}

pub(super) async fn remove_server(state: &AppState) -> Result<String, CommandError> {
    let removal = state.server_changes.removal.lock().unwrap_or_else(PoisonError::into_inner).take();
    let removal = removal.ok_or_else(|| {
        CommandError::malformed("the reviewed removal is no longer available; review it again")
    })?;
    let server = removal.name.clone();
    let logins = Logins::of(&trusted(state)?.daemon.secrets());
    // The login ends even if its tokens cannot be deleted.
    let keeps_tokens = logins.record(&server).is_some() && end_login(state, &server).await.is_err();
    run_blocking(move || removal.write()).await?;
    let ended = end_sessions_of(state, &server).await?;
    let tokens = if keeps_tokens { " The tokens of its login could not be deleted." } else { "" };
    Ok(format!("{} was removed.{}{tokens}", visible::line(&server), closed_sessions_sentence(ended)))
}

pub(super) async fn restore_server(state: &AppState, name: String) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || removal::restore_server(&home, &name)).await
}

pub(super) async fn forget_server(state: &AppState, name: String) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || removal::discard_server(&home, &name)).await
}

pub(super) async fn plan_opening(
    state: &AppState,
    server: String,
    wanted: WantedOpening,
) -> Result<Option<PlannedOpening>, CommandError> {
    let home = trusted(state)?.home;
    let picked = |verb: &str| format!("Pick a folder that {} may always {verb}", visible::line(&server));
    let (title, opening): (_, fn(String) -> EntryPermission) = match wanted {
        WantedOpening::Host { host } => {
            return store_plan(state, move || {
                EntryPermissionChange::allow(&home, &server, EntryPermission::Host(host))
            })
            .await;
        }
        WantedOpening::Read => (picked("read"), EntryPermission::Read),
        WantedOpening::Write => (picked("change"), EntryPermission::Write),
    };
    let folder = state.pickers.pick(&title, Picked::Folder, &state.home).await;
    let Some(folder) = folder else { return Ok(None) };
    let folder = folder.into_os_string().into_string();
    let folder = folder.map_err(|_| CommandError::refused("the name of that folder is not UTF-8"))?;
    store_plan(state, move || EntryPermissionChange::allow(&home, &server, opening(folder))).await
}

/// Stores the planned access and returns its description.
async fn store_plan(
    state: &AppState,
    plan: impl FnOnce() -> Result<EntryPermissionChange, ServerChangeError> + Send + 'static,
) -> Result<Option<PlannedOpening>, CommandError> {
    let change = run_blocking(plan).await?;
    let planned = PlannedOpening {
        what: visible::line(change.permission.target()),
        words: change.permission.describe(&visible::line(&change.server)),
    };
    *state.server_changes.opening.lock().unwrap_or_else(PoisonError::into_inner) = Some(change);
    Ok(Some(planned))
}

pub(super) async fn write_opening(state: &AppState) -> Result<String, CommandError> {
    let change = state.server_changes.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
    let change = change.ok_or_else(|| {
        CommandError::malformed("the reviewed access is no longer available; review it again")
    })?;
    let what = visible::line(change.permission.target());
    run_blocking(move || change.write()).await?;
    Ok(format!("{what} is open to new sessions."))
}

pub(super) async fn close_opening(
    state: &AppState,
    server: String,
    opening: EntryPermission,
) -> Result<String, CommandError> {
    let home = trusted(state)?.home;
    let (name, what) = (server.clone(), visible::line(opening.target()));
    run_blocking(move || EntryPermissionChange::remove(&home, &name, opening)?.write()).await?;
    let ended = end_sessions_of(state, &server).await?;
    Ok(format!("{what} is closed.{}", closed_sessions_sentence(ended)))
}

pub(super) async fn plan_limits(
    state: &AppState,
    server: String,
    wanted: BTreeMap<Limit, Option<u64>>,
) -> Result<PlannedLimits, CommandError> {
    let home = trusted(state)?.home;
    let change = run_blocking(move || LimitsChange::plan(&home, &server, &wanted)).await?;
    let planned = PlannedLimits {
        differences: change
            .differences
            .iter()
            .map(|one| PlannedLimit { looser: one.is_looser, words: one.description.clone() })
            .collect(),
        diff: visible::lines(&change.diff),
    };
    *state.server_changes.limits.lock().unwrap_or_else(PoisonError::into_inner) = Some(change);
    Ok(planned)
}

pub(super) async fn write_limits(state: &AppState) -> Result<String, CommandError> {
    let change = state.server_changes.limits.lock().unwrap_or_else(PoisonError::into_inner).take();
    let change = change.ok_or_else(|| {
        CommandError::malformed("the reviewed limits are no longer available; review them again")
    })?;
    run_blocking(move || change.write()).await?;
    Ok("Changes apply to new sessions.".to_owned())
}

/// Closes the server's active sessions, which still have the previous access, and returns their number.
async fn end_sessions_of(state: &AppState, server: &str) -> Result<usize, CommandError> {
    let reply = state.backend.request(Request::Sessions).await;
    let Reply::Sessions(all) = reply else { return Err(CommandError::of(reply)) };
    let mut ended = 0;
    for session in all.into_iter().filter(|one| one.server == server) {
        // Ignores a refusal, because the session may already be closed.
        let reply = state.backend.request(Request::EndSession { session: session.id }).await;
        ended += usize::from(matches!(reply, Reply::Done));
    }
    Ok(ended)
}

fn closed_sessions_sentence(ended: usize) -> String {
    match ended {
        0 => String::new(),
        1 => " Its session was closed.".to_owned(),
        ended => format!(" Its {ended} sessions were closed."),
    }
}
