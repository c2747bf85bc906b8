//! Commands that list, add, install and update servers, and review their tools' annotations.
//!
//! - A proposal is stored here until the user confirms it, and is written exactly as shown.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::found_update::FoundUpdate;
use super::grants::trusted;
use super::proposed_tools::ProposedTools;
use super::servers_view::ServersView;
use crate::backend::Trusted;
use ironcurtain_admin::annotate::{AnnotateError, AnnotationsFile, Draft};
use ironcurtain_admin::catalog::{AddRequest, Catalog, CatalogError, Source, add};
use ironcurtain_admin::identity::{IdentityChangeError, stored_state};
use ironcurtain_admin::inspect::{Inspection, inspect};
use ironcurtain_admin::install::{Installer, Update, UpdateCheck, check_for_update as find_update, install};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_visible as visible;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Timeout for the package manager.
const INSTALLING: Duration = Duration::from_secs(600);

/// Timeout for a server to list its tools.
const LISTING: Duration = Duration::from_secs(60);

/// Proposals that the user has not confirmed yet, by server.
#[derive(Default)]
pub(super) struct ServerDrafts {
    tools: Mutex<HashMap<String, Draft>>,
    updates: Mutex<HashMap<String, Box<Update>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedServer {
    id: String,
    name: String,
    settings: BTreeMap<String, String>,
}

/// Reason a catalog server was not added.
#[derive(Debug, thiserror::Error)]
enum AddFailed {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the catalog has no `{0}`")]
    Unknown(String),
    #[error(transparent)]
    Add(#[from] ironcurtain_admin::catalog::AddError),
    #[error(transparent)]
    Kept(#[from] IdentityChangeError),
}

pub(super) async fn servers(state: &AppState) -> Result<ServersView, CommandError> {
    let home = trusted(state)?.home;
    let reply = state.backend.request(Request::Sessions).await;
    let Reply::Sessions(sessions) = reply else { return Err(CommandError::of(reply)) };
    run_blocking(move || ServersView::read(&home, &sessions)).await
}

pub(super) async fn add_server(state: &AppState, server: WantedServer) -> Result<Vec<String>, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || {
        let catalog = Catalog::shipped()?;
        let known = catalog.find(&server.id).ok_or_else(|| AddFailed::Unknown(visible::line(&server.id)))?;
        let request =
            AddRequest { known, name: &server.name, from: None, settings: &server.settings, replace: false };
        let kept = stored_state(&home, &server.name)?;
        let added = add(&home, request)?;
        let mut lines = vec![format!("Added to {}.", added.servers.display())];
        if !kept.is_empty() {
            lines.push(format!(
                "This name already has {kept}. Only the same program gets it; any other is blocked until you decide."
            ));
        }
        if added.annotations.is_none() {
            lines.push("Its tools have not been reviewed yet, so agents cannot use them.".to_owned());
        }
        if matches!(known.source, Source::Npm { .. } | Source::Pypi { .. }) {
            lines.push("Install its package before it can start.".to_owned());
        }
        lines.extend(known.needs.as_ref().map(|needs| format!("It needs {needs}.")));
        Ok::<_, AddFailed>(lines)
    })
    .await
}

pub(super) async fn install_server(state: &AppState, name: String) -> Result<String, CommandError> {
    let installer = installer(trusted(state)?);
    let installed = install(&installer, &name).await.map_err(CommandError::refused)?;
    let package = installed.record.package_spec();
    Ok(if installed.was_installed {
        format!("{package} is already installed and unchanged.")
    } else {
        format!("{package} is installed. It has not been started.")
    })
}

pub(super) async fn check_for_update(state: &AppState, name: String) -> Result<FoundUpdate, CommandError> {
    let installer = installer(trusted(state)?);
    let mut updates = HashMap::new();
    let found = match find_update(&installer, &name, None).await.map_err(CommandError::refused)? {
        UpdateCheck::UpToDate(version) => FoundUpdate::newest(version),
        UpdateCheck::Found(update) => {
            let found = FoundUpdate::of(&update);
            updates.insert(name, update);
            found
        }
    };
    // The package lock permits only one update at a time, so an earlier proposal is dropped.
    *state.drafts.updates.lock().unwrap_or_else(PoisonError::into_inner) = updates;
    Ok(found)
}

pub(super) async fn apply_update(state: &AppState, name: String) -> Result<String, CommandError> {
    let update = state.drafts.updates.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
    let update = update.ok_or_else(|| CommandError::malformed("no update found: check again"))?;
    let lines = format!("New sessions use version {}; running sessions keep {}.", update.to, update.from);
    run_blocking(move || update.switch()).await?;
    Ok(lines)
}

pub(super) async fn review_tools(state: &AppState, name: String) -> Result<ProposedTools, CommandError> {
    let Trusted { home, programs, allow_root, daemon, .. } = trusted(state)?;
    let secrets = daemon.secrets();
    let inspection = Inspection { home: home.clone(), programs, allow_root, timeout: LISTING, secrets };
    let inspected = inspect(&inspection, &name).await.map_err(CommandError::refused)?;
    let draft = Draft::new(&name, inspected.listed.map_err(CommandError::refused)?);
    let (draft, proposed) = run_blocking(move || {
        let changes = AnnotationsFile::open(&home)?.compare(&draft)?;
        let proposed = ProposedTools::of(&draft, &changes);
        Ok::<_, AnnotateError>((draft, proposed))
    })
    .await?;
    state.drafts.tools.lock().unwrap_or_else(PoisonError::into_inner).insert(name, draft);
    Ok(proposed)
}

pub(super) async fn save_tools(state: &AppState, name: String) -> Result<String, CommandError> {
    let home = trusted(state)?.home;
    let draft = state.drafts.tools.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
    let draft = draft.ok_or_else(|| {
        CommandError::malformed("the reviewed tools are no longer available; review them again")
    })?;
    run_blocking(move || {
        let file = AnnotationsFile::open(&home)?;
        file.write(&draft)?;
        Ok::<_, AnnotateError>(format!("Written to {}.", file.path().display()))
    })
    .await
}

fn installer(trusted: Trusted) -> Installer {
    let Trusted { home, programs, allow_root, daemon, .. } = trusted;
    Installer { home, programs, allow_root, timeout: INSTALLING, secrets: daemon.secrets(), on_wait: None }
}
