//! Commands that add a server from a package, an address or a configuration in the server's documentation.
//!
//! - A planned server is stored here until the user confirms it, and is written exactly as shown.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use super::open_bundle::{OpenBundle, OpenBundleError, WantedBundle};
use super::server_reach::reaches;
use ironcurtain_admin::catalog::{
    AddError, Addition, AdditionChoices, AdditionError, add_server, servers_with_addition,
};
use ironcurtain_admin::identity::{IdentityChangeError, stored_state};
use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// Planned server that the user has not confirmed yet.
#[derive(Default)]
pub(super) struct AdditionDraft(Arc<Mutex<Draft>>);

/// Planned server shown by the page, and its bundle.
#[derive(Default)]
pub(super) struct Draft {
    bundle: Option<OpenBundle>,
    planned: Option<Addition>,
}

/// Server that the user wants to add, as the page describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedAddition {
    /// Package, address or configuration text.
    what: String,
    /// Name of the server, or empty for the default name.
    name: String,
}

/// Planned server, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct PlannedServer {
    name: String,
    command: String,
    entry: String,
    reaches: Vec<String>,
    remote: bool,
    /// Names of the secrets for the typed values, by bundle setting.
    secrets: BTreeMap<String, String>,
    /// `true` if a variable or header has a plain value, which may be a secret.
    plain_values: bool,
    /// Description of the state already stored under this name.
    kept: Option<String>,
}

/// Reason a server was not added.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error(transparent)]
    Bundle(#[from] OpenBundleError),
    #[error(transparent)]
    Addition(#[from] AdditionError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error(transparent)]
    Kept(#[from] IdentityChangeError),
    #[error("a server named `{0}` already exists; choose another name")]
    There(String),
    #[error("the reviewed server is no longer available; review it again")]
    NotShown,
}

pub(super) async fn plan_server(
    state: &AppState,
    wanted: WantedAddition,
) -> Result<PlannedServer, CommandError> {
    let home = trusted(state)?.home;
    state.addition.with(move |draft| draft.plan(&home, &wanted)).await
}

pub(super) async fn write_server(state: &AppState) -> Result<String, CommandError> {
    let home = trusted(state)?.home;
    state.addition.with(move |draft| draft.write(&home)).await
}

impl AdditionDraft {
    /// Calls a function with the draft on a blocking thread.
    pub(super) async fn with<T: Send + 'static, E: Display + Send + 'static>(
        &self,
        act: impl FnOnce(&mut Draft) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommandError> {
        let draft = self.0.clone();
        run_blocking(move || act(&mut draft.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

impl Draft {
    fn plan(&mut self, home: &Home, wanted: &WantedAddition) -> Result<PlannedServer, PlanError> {
        self.leave();
        let what = wanted.what.trim();
        let name = Some(wanted.name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
        let choices = AdditionChoices { name, ..AdditionChoices::default() };
        let adding = Addition::from_documentation(home, &[what.to_owned()], &choices)?;
        self.show(home, adding)
    }

    pub(super) fn plan_bundle(
        &mut self,
        home: &Home,
        wanted: WantedBundle,
    ) -> Result<PlannedServer, PlanError> {
        self.planned = None;
        let adding = self.bundle()?.addition(home, wanted)?;
        self.show(home, adding)
    }

    /// Stores the planned server and returns its description.
    fn show(&mut self, home: &Home, adding: Addition) -> Result<PlannedServer, PlanError> {
        let servers = match servers_with_addition(home, &adding, false) {
            Err(AddError::NameInUse { name, .. }) => return Err(PlanError::There(name)),
            found => found?,
        };
        let server = servers.iter().find(|server| server.name == adding.name);
        let entry = serde_json::to_string_pretty(&adding.entry).unwrap_or_default();
        let named = server.map(Server::secret_names).unwrap_or_default();
        let mut secrets = self.bundle.as_ref().map(|bundle| bundle.secrets(&adding.name)).unwrap_or_default();
        secrets.retain(|_, secret| named.iter().any(|name| name.as_str() == secret));
        let planned = PlannedServer {
            name: visible::line(&adding.name),
            command: server.map(|server| visible::line(&server.command_line())).unwrap_or_default(),
            entry: visible::lines(&entry),
            reaches: server.map(reaches).unwrap_or_default(),
            remote: server.is_some_and(|server| server.remote.is_some()),
            secrets,
            // No warning about `plain_values` for a bundle, because its manifest marks the secret settings.
            kept: Some(stored_state(home, &adding.name)?)
                .filter(|kept| !kept.is_empty())
                .map(|kept| kept.to_string()),
            plain_values: self.bundle.is_none() && has_plain_values(&adding),
        };
        self.planned = Some(adding);
        Ok(planned)
    }

    /// Writes the entry that was shown to the configuration file.
    pub(super) fn write(&mut self, home: &Home) -> Result<String, PlanError> {
        let adding = self.planned.as_ref().ok_or(PlanError::NotShown)?;
        let added = add_server(home, adding, false)?;
        self.planned = None;
        self.bundle.take().into_iter().for_each(OpenBundle::keep);
        Ok(format!("Added to {}. It has not been started.", added.servers.display()))
    }

    pub(super) fn open(&mut self, bundle: OpenBundle) {
        *self = Self { bundle: Some(bundle), planned: None };
    }

    pub(super) fn leave(&mut self) {
        *self = Self::default();
    }

    pub(super) fn bundle(&mut self) -> Result<&mut OpenBundle, OpenBundleError> {
        self.bundle.as_mut().ok_or(OpenBundleError::Gone)
    }
}

fn has_plain_values(adding: &Addition) -> bool {
    let values = ["env", "headers"].into_iter().filter_map(|key| adding.entry.get(key)?.as_object());
    values.flatten().any(|(name, value)| {
        name != "HOME" && value.as_str().is_some_and(|value| !value.is_empty() && !value.contains("keyring:"))
    })
}
