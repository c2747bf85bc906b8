//! Commands that add a server which is not in the list: by its package, by its address, or as its makers print it.
//!
//! - What would be written is shown first and kept here: what is written is what was shown, whatever the page says.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use super::servers_view::reaches;
use ironcurtain_admin::catalog::{AddError, Addition, AdditionError, add_server, candidates};
use ironcurtain_daemon::consent::visible;
use ironcurtain_policy::Annotations;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The server that waits for the person's yes.
#[derive(Default)]
pub(super) struct AdditionDraft(Mutex<Option<Addition>>);

/// A server as the page names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedAddition {
    /// A package, an address, or what makers print.
    what: String,
    /// Its name; empty for its own.
    name: String,
}

/// A server as it would be added.
#[derive(Debug, Serialize)]
pub(super) struct PlannedServer {
    name: String,
    entry: String,
    reaches: Vec<String>,
    remote: bool,
    /// A variable or a header has a value in plain words, which may be a key.
    plain_values: bool,
}

/// Why a server is not added.
#[derive(Debug, thiserror::Error)]
enum PlanError {
    #[error(transparent)]
    Addition(#[from] AdditionError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error("`{0}` is there already; give this one another name")]
    There(String),
}

pub(super) async fn plan_server(
    state: &AppState,
    wanted: WantedAddition,
) -> Result<PlannedServer, CommandError> {
    let home = trusted(state)?.home;
    let (adding, planned) = aside(move || {
        let what = wanted.what.trim();
        let name = Some(wanted.name.trim()).filter(|name| !name.is_empty());
        let adding = if what.starts_with('{') {
            Addition::snippet(&home, what, name)?
        } else {
            Addition::named(&home, what, name, None, &BTreeMap::new())?
        };
        let servers = match candidates(&home, &adding, false) {
            Err(AddError::There { name, .. }) => return Err(PlanError::There(name)),
            found => found?,
        };
        let server = servers.iter().find(|server| server.name == adding.name);
        let entry = serde_json::to_string_pretty(&adding.entry).unwrap_or_default();
        let planned = PlannedServer {
            name: visible::line(&adding.name),
            entry: visible::lines(&entry),
            reaches: server.map(|server| reaches(server, &Annotations::default())).unwrap_or_default(),
            remote: server.is_some_and(|server| server.remote.is_some()),
            plain_values: has_plain_values(&adding),
        };
        Ok::<_, PlanError>((adding, planned))
    })
    .await?;
    *state.addition.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(adding);
    Ok(planned)
}

pub(super) async fn write_server(state: &AppState) -> Result<String, CommandError> {
    let home = trusted(state)?.home;
    let adding = state.addition.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let adding = adding.ok_or_else(|| CommandError::malformed("look at what would be added again"))?;
    aside(move || {
        let added = add_server(&home, &adding, false)?;
        Ok::<_, AddError>(format!("It is written into {}. Nothing of it has run.", added.servers.display()))
    })
    .await
}

fn has_plain_values(adding: &Addition) -> bool {
    let values = ["env", "headers"].into_iter().filter_map(|key| adding.entry.get(key)?.as_object());
    values.flatten().any(|(name, value)| {
        name != "HOME" && value.as_str().is_some_and(|value| !value.is_empty() && !value.contains("keyring:"))
    })
}
