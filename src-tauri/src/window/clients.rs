//! Commands that list, connect and disconnect agent clients.
//!
//! - A planned change is stored here until the user confirms it. It is written exactly as shown, and only if the
//!   settings file has not changed since.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use super::secrets::{PlainSecretRow, store_plain_secrets};
use crate::backend::{Backend, Trusted};
use ironcurtain_admin::catalog::GivenSecrets;
use ironcurtain_admin::clients::{
    ClientChange, ClientError, ClientReport, ClientState, ClientTarget, Clients, ConnectRequest, EntryTarget,
};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Maximum length of an entry's description, in characters. The description contains the entry's command.
const MAX_TARGET_LEN: usize = 400;

/// Planned changes that the user has not confirmed yet, by client.
#[derive(Default)]
pub(super) struct ClientDrafts(Mutex<HashMap<String, ClientChange>>);

/// Change to a client's settings that the page requests.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum WantedClientChange {
    /// Adds an entry for each server.
    Connect,
    /// Adds a single entry for the servers of a profile.
    Profile { profile: String },
    /// Moves the client's own servers to IronCurtain.
    Move {
        /// Names of the servers to move, or `None` for all that can be moved.
        only: Option<Vec<String>>,
        /// `true` to also move the servers' unprotected secrets to the keyring.
        secrets: bool,
    },
    /// Restores the client's previous entries.
    Disconnect,
}

/// Agent client, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct FoundClient {
    id: &'static str,
    name: &'static str,
    file: String,
    state: ClientState,
    entries: Vec<FoundEntry>,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct FoundEntry {
    name: String,
    way: String,
    /// `true` if the entry bypasses IronCurtain.
    past: bool,
    /// `true` if the entry connects to a remote server. A remote server has no access to this computer.
    remote: bool,
}

/// Planned change to a client's settings, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct PlannedChange {
    file: String,
    diff: String,
    servers_diff: Option<String>,
    left: Vec<String>,
    /// Secrets to move to the keyring.
    secrets: Vec<PlainSecretRow>,
}

pub(super) async fn found_clients(state: &AppState) -> Result<Vec<FoundClient>, CommandError> {
    let clients = clients(trusted(state)?).map_err(CommandError::refused)?;
    run_blocking(move || Ok::<_, ClientError>(clients.survey().into_iter().map(found).collect())).await
}

/// Servers that agents start without IronCurtain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BypassingServers {
    /// Number of servers that were found.
    pub(crate) servers: usize,
    /// `true` if the settings of at least one agent could not be read, so there may be more servers.
    pub(crate) is_unchecked: bool,
}

impl BypassingServers {
    fn of(clients: &[FoundClient]) -> Self {
        let past = |client: &FoundClient| client.entries.iter().filter(|entry| entry.past).count();
        Self {
            servers: clients.iter().map(past).sum(),
            is_unchecked: clients.iter().any(|client| client.state == ClientState::Unreadable),
        }
    }
}

/// Looks for servers that bypass IronCurtain.
pub(crate) async fn bypassing_servers(backend: &dyn Backend) -> BypassingServers {
    let Some(trusted) = backend.trusted() else { return BypassingServers::default() };
    let survey = tokio::task::spawn_blocking(move || {
        let found: Vec<_> = clients(trusted).ok()?.survey().into_iter().map(found).collect();
        Some(BypassingServers::of(&found))
    });
    survey.await.ok().flatten().unwrap_or(BypassingServers { servers: 0, is_unchecked: true })
}

pub(super) async fn plan_client(
    state: &AppState,
    id: String,
    wish: WantedClientChange,
) -> Result<PlannedChange, CommandError> {
    let clients = clients(trusted(state)?).map_err(CommandError::refused)?;
    let target = id.clone();
    let change = run_blocking(move || {
        let target = ClientTarget { id: &target, project: None };
        match wish {
            WantedClientChange::Connect => clients.connect(target, ConnectRequest::Each),
            WantedClientChange::Profile { profile } => {
                clients.connect(target, ConnectRequest::Profile(&profile))
            }
            WantedClientChange::Move { only, secrets } => {
                let (only, given) = (only.as_deref(), &GivenSecrets::new());
                clients.connect(target, ConnectRequest::Move { secrets, only, given })
            }
            WantedClientChange::Disconnect => clients.disconnect(target, None),
        }
    })
    .await?;
    let planned = PlannedChange {
        file: change.file.display().to_string(),
        diff: visible::lines(&change.redacted_diff()),
        servers_diff: change.redacted_servers_diff().as_deref().map(visible::lines),
        secrets: change.secrets.iter().map(PlainSecretRow::of).collect(),
        left: change
            .unmoved
            .iter()
            .map(|left| visible::line(&format!("{}: {}", left.name, left.reason)))
            .collect(),
    };
    state.client_drafts.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, change);
    Ok(planned)
}

pub(super) async fn write_client(state: &AppState, id: String) -> Result<String, CommandError> {
    let clients = clients(trusted(state)?).map_err(CommandError::refused)?;
    let change = state.client_drafts.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    let change = change.ok_or_else(|| {
        CommandError::malformed("the reviewed change is no longer available; review it again")
    })?;
    let message = format!("Written. Restart {} to apply it.", change.client);
    store_plain_secrets(state, &change.secrets).await?;
    run_blocking(move || clients.write(&change)).await?;
    Ok(message)
}

fn clients(Trusted { home, programs, .. }: Trusted) -> Result<Clients, ClientError> {
    Clients::new(home, &programs)
}

fn found(report: ClientReport) -> FoundClient {
    let entries = report.entries.into_iter().map(|entry| {
        let remote = matches!(entry.target, EntryTarget::Remote { .. });
        let (target, past) = match entry.target {
            EntryTarget::Shim { server: Some(server), .. } => (format!("server {server}, protected"), false),
            EntryTarget::Shim { server: None, profile: Some(profile) } => {
                (format!("servers of the profile {profile}, protected"), false)
            }
            EntryTarget::Shim { server: None, profile: None } => ("all servers, protected".to_owned(), false),
            EntryTarget::OtherShim { path } => (format!("starts another shim: {path}"), true),
            EntryTarget::Server { command } => {
                (format!("not protected: started directly ({command}) with all your rights"), true)
            }
            EntryTarget::Remote { url } => (
                format!(
                    "not protected: connects directly to {url}, which sees everything that is sent to it"
                ),
                true,
            ),
            EntryTarget::Disabled => ("switched off".to_owned(), false),
            EntryTarget::Unknown => ("unrecognized format".to_owned(), true),
        };
        let target = visible::line(&visible::head(&target, MAX_TARGET_LEN));
        FoundEntry { name: visible::line(&entry.name), way: target, past, remote }
    });
    FoundClient {
        id: report.id,
        name: report.name,
        file: report.file.display().to_string(),
        state: report.state,
        entries: entries.collect(),
        problem: report.problem.as_deref().map(visible::line),
    }
}
