//! Commands for exporting the audit log to a collector.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::collector_export::{
    CollectorExportError, ExportStatus, ExportTarget, ManagedExport, disable_export as turn_off,
    enable_export as turn_on, export_sample as sample, export_status, exported_paths,
};
use ironcurtain_config::ExportedPaths;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{SecretName, SecretNameError};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};

/// Form in which paths are exported, as named by the page.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PathsChoice {
    Full,
    Hashed,
    None,
}

#[derive(Debug, Serialize)]
pub(super) struct ExportView {
    /// Address of the collector, or `None` if the export is off.
    url: Option<String>,
    paths: PathsChoice,
    sent: u64,
    /// Number of entries that were dropped or refused.
    not_sent: u64,
    /// Failure since the last successful export, if any.
    failure: Option<String>,
    /// Requirements of the user's organization, or `None` if this machine is not managed.
    managed: Option<ManagedExportView>,
}

#[derive(Debug, Serialize)]
struct ManagedExportView {
    organization: String,
    /// Address of the organization's collector, or `None` if the user chooses the collector.
    url: Option<String>,
    /// Form of paths that the organization has set, or `None` if the user chooses the form.
    paths: Option<PathsChoice>,
    /// `true` if nothing starts with the current export.
    is_missing: bool,
    /// `true` if the export cannot be turned off.
    is_required: bool,
}

/// Reason the export could not be turned on.
#[derive(Debug, thiserror::Error)]
enum EnableFailed {
    #[error(transparent)]
    Name(#[from] SecretNameError),
    #[error(transparent)]
    Export(#[from] CollectorExportError),
}

pub(super) async fn record_export(state: &AppState) -> Result<ExportView, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || view(&home)).await
}

/// Returns the newest entries as they would be sent, each as JSON.
pub(super) async fn export_sample(state: &AppState, paths: PathsChoice) -> Result<Vec<String>, CommandError> {
    let home = trusted(state)?.home;
    let events = run_blocking(move || sample(&home, exported_paths(Some(form(paths)))?)).await?;
    let text = |event: &serde_json::Value| serde_json::to_string_pretty(event).unwrap_or_default();
    Ok(events.iter().map(|event| visible::lines(&text(event))).collect())
}

pub(super) async fn enable_export(
    state: &AppState,
    url: String,
    paths: Option<PathsChoice>,
    token: String,
) -> Result<ExportView, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || {
        let token = Some(token.trim()).filter(|token| !token.is_empty()).map(SecretName::try_from);
        let choice =
            ExportTarget { url: url.trim().to_owned(), paths: paths.map(form), token: token.transpose()? };
        turn_on(&home, &choice)?;
        Ok::<_, EnableFailed>(view(&home)?)
    })
    .await
}

pub(super) async fn disable_export(state: &AppState) -> Result<ExportView, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || {
        turn_off(&home)?;
        view(&home)
    })
    .await
}

fn view(home: &Home) -> Result<ExportView, CollectorExportError> {
    let ExportStatus { config, managed, state, .. } = export_status(home)?;
    let paths = exported_paths(config.as_ref().map(|config| config.paths))?.into();
    let url = config.map(|config| config.url.split(['?', '#']).next().unwrap_or_default().to_owned());
    let (sent, not_sent, failure) =
        state.map_or((0, 0, None), |state| (state.sent, state.dropped + state.refused, state.failure));
    Ok(ExportView { url, paths, sent, not_sent, failure, managed: managed.map(ManagedExportView::from) })
}

impl From<ManagedExport> for ManagedExportView {
    fn from(managed: ManagedExport) -> Self {
        let ManagedExport { organization, url, paths, missing, is_required } = managed;
        Self {
            organization,
            url,
            paths: paths.map(PathsChoice::from),
            is_missing: missing.is_some(),
            is_required,
        }
    }
}

impl From<ExportedPaths> for PathsChoice {
    fn from(paths: ExportedPaths) -> Self {
        match paths {
            ExportedPaths::Full => Self::Full,
            ExportedPaths::Hashed => Self::Hashed,
            ExportedPaths::None => Self::None,
        }
    }
}

fn form(choice: PathsChoice) -> ExportedPaths {
    match choice {
        PathsChoice::Full => ExportedPaths::Full,
        PathsChoice::Hashed => ExportedPaths::Hashed,
        PathsChoice::None => ExportedPaths::None,
    }
}
