//! Turns the audit log's export on and off and shows the exported entries.

use crate::file_edit;
use crate::settings::{self, ConfigChangeError};
use ironcurtain_audit::{FollowedEntry, Follower, LogPosition};
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{Config, ConfigError, ExportConfig, ExportPathsError, ExportedPaths, Managed};
use ironcurtain_daemon::path_form;
use ironcurtain_export::{
    DeliveryError, DeviceKey, DeviceKeyError, Endpoint, EndpointError, ExportState, ExportedEvent, KeyStore,
    OcsfError, OcsfWritten, PublicKey, StateError, append_ocsf, probe, sample,
};
use ironcurtain_secrets::{SecretName, SecretStore};
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;

/// Number of entries in a sample.
const SAMPLE_COUNT: usize = 5;

/// Collector to export to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTarget {
    /// Base address of the collector.
    pub url: String,
    /// Form in which paths are exported. `None`: the organization's form, or else the default.
    pub paths: Option<ExportedPaths>,
    /// Name of the secret to send as a bearer token.
    pub token: Option<SecretName>,
}

/// State of the export.
#[derive(Debug)]
pub struct ExportStatus {
    /// Export settings in effect; `None` if the export is off.
    pub config: Option<ExportConfig>,
    /// Requirements of the user's organization, or `None` if this machine is not managed.
    pub managed: Option<ManagedExport>,
    /// Stored state; `None` before the trusted process has started the export.
    pub state: Option<ExportState>,
    /// Size of the unsent part of the log, in bytes.
    pub unsent_bytes: u64,
    /// Public key that verifies the signed heads.
    pub key: Option<PublicKey>,
}

/// Requirements of the user's organization for the export.
#[derive(Debug)]
pub struct ManagedExport {
    /// Name of the organization.
    pub organization: String,
    /// URL of the organization's collector; `None` if the user chooses the collector.
    pub url: Option<String>,
    /// Form in which paths must be exported; `None` if the user chooses the form.
    pub paths: Option<ExportedPaths>,
    /// Reason nothing starts with the current export, or `None` if the export meets the requirements.
    pub missing: Option<String>,
    /// `true` if the export cannot be turned off.
    pub is_required: bool,
}

/// Error from reading or changing the export.
#[derive(Debug, thiserror::Error)]
pub enum CollectorExportError {
    /// IronCurtain's folders cannot be created.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A setting is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The user's organization does not allow the change.
    #[error("{0}")]
    Managed(String),
    /// The user's organization has set another form of paths.
    #[error(transparent)]
    Paths(#[from] ExportPathsError),
    /// The settings could not be changed.
    #[error(transparent)]
    Change(#[from] ConfigChangeError),
    /// The log could not be read.
    #[error("failed to read the audit log: {0}")]
    Log(io::Error),
    /// The position of the export could not be stored.
    #[error("failed to store the position of the export: {0}")]
    Position(io::Error),
    /// The export's state file is damaged.
    #[error(transparent)]
    State(#[from] StateError),
    /// The device key cannot be used.
    #[error(transparent)]
    Key(#[from] DeviceKeyError),
    /// The OCSF events could not be written.
    #[error(transparent)]
    Ocsf(#[from] OcsfError),
}

/// Reason the configured collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The address is invalid, or the token is unavailable.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The collector does not accept entries.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

/// Turns the export on. A running trusted process starts exporting at once. Only entries recorded from now on are
/// exported, even if the trusted process starts later.
///
/// # Errors
/// Returns a [`CollectorExportError`] on failure, in which case nothing changed.
pub fn enable_export(home: &Home, target: &ExportTarget) -> Result<Config, CollectorExportError> {
    exported_paths(target.paths)?;
    if let Some(managed) = Managed::load()?
        && let Some(reason) = managed.refusal_without_export(Some(&target.url))
    {
        return Err(CollectorExportError::Managed(reason));
    }
    let mut export = Map::from_iter([("url".to_owned(), Value::from(target.url.as_str()))]);
    if let Some(paths) = target.paths {
        export.insert("paths".to_owned(), paths.as_str().into());
    }
    if let Some(token) = &target.token {
        let headers = json!({ "Authorization": format!("Bearer keyring:{token}") });
        export.insert("headers".to_owned(), headers);
    }
    home.prepare()?;
    if Config::load(home)?.export.is_none() {
        let start = LogPosition::end(&home.audit()).map_err(CollectorExportError::Log)?;
        let state = ExportState::starting_at(start);
        state.write(&home.export_state()).map_err(CollectorExportError::Position)?;
    }
    Ok(settings::change_settings(home, &[("export", export.into())])?)
}

/// Turns the export off, if it is on. Unsent entries will never be sent.
///
/// # Errors
/// Returns a [`CollectorExportError`] on failure or if the user's organization requires the export. Nothing changed then.
pub fn disable_export(home: &Home) -> Result<Config, CollectorExportError> {
    let config = Config::load(home)?;
    let Some(export) = &config.export else { return Ok(config) };
    if let Some(reason) = Managed::load()?.and_then(|managed| managed.refusal_to_disable_export(&export.url))
    {
        return Err(CollectorExportError::Managed(reason));
    }
    let config = settings::edit(home, |file, text| file_edit::remove(file, &text, &["export"]))?;
    // The file may not exist, because a running trusted process also removes it.
    let _ = std::fs::remove_file(home.export_state());
    Ok(config)
}

/// Returns the form in which paths are exported if the user chose this form, or none.
///
/// # Errors
/// Returns [`CollectorExportError::Paths`] if the user's organization has set another form.
pub fn exported_paths(chosen: Option<ExportedPaths>) -> Result<ExportedPaths, CollectorExportError> {
    let paths = match Managed::load()? {
        Some(managed) => managed.export_paths(chosen)?,
        None => chosen,
    };
    Ok(paths.unwrap_or_default())
}

/// Returns the newest entries in their exported form, oldest first.
///
/// # Errors
/// Returns a [`CollectorExportError`] if the log cannot be read or no key can be generated.
pub fn export_sample(home: &Home, paths: ExportedPaths) -> Result<Vec<Value>, CollectorExportError> {
    let form = path_form(paths, || match key_store(home).public()? {
        Some(_) => Ok(key_store(home).open_or_create()?.path_key()),
        // Uses a temporary key, because a sample must not create the real key.
        None => Ok(DeviceKey::generate()?.path_key()),
    })?;
    let start = LogPosition::before_newest(&home.audit(), SAMPLE_COUNT).map_err(CollectorExportError::Log)?;
    let mut follower = Follower::new(&home.audit(), start);
    let mut events = Vec::new();
    while let Some(next) = follower.read_next().map_err(CollectorExportError::Log)? {
        if let FollowedEntry::Entry { entry, link, .. } = next {
            events.push(sample(&ExportedEvent::from_entry(&entry, &link, &form)));
        }
    }
    Ok(events)
}

/// Returns the state of the export.
///
/// # Errors
/// Returns a [`CollectorExportError`] if the settings, the log, the export's state or the key cannot be read.
pub fn export_status(home: &Home) -> Result<ExportStatus, CollectorExportError> {
    let state = ExportState::read(&home.export_state())?;
    let unsent_bytes =
        state.as_ref().map(|state| Follower::new(&home.audit(), state.position.clone()).behind());
    let config = Config::load(home)?.export;
    let managed = Managed::load()?.map(|managed| {
        let url = config.as_ref().map(|config| config.url.as_str());
        ManagedExport {
            missing: managed.refusal_without_export(url),
            is_required: url.is_some_and(|url| managed.refusal_to_disable_export(url).is_some()),
            url: managed.settings.export_url,
            paths: managed.settings.export_paths,
            organization: managed.organization,
        }
    });
    Ok(ExportStatus {
        config,
        managed,
        state,
        unsent_bytes: unsent_bytes.transpose().map_err(CollectorExportError::Log)?.unwrap_or(0),
        key: key_store(home).public()?,
    })
}

/// Sends an empty request to the collector to check that it responds.
///
/// # Errors
/// Returns a [`ProbeError`] if the collector cannot be used.
pub async fn probe_collector(secrets: &SecretStore, config: &ExportConfig) -> Result<(), ProbeError> {
    Ok(probe(&Endpoint::filled(&config.url, &config.headers, secrets).await?).await?)
}

/// Appends all entries that the file does not contain yet, as OCSF events.
///
/// # Errors
/// Returns a [`CollectorExportError`] if the log or the key cannot be read, or the file cannot be written.
pub fn write_ocsf(
    home: &Home,
    file: &Path,
    paths: ExportedPaths,
) -> Result<OcsfWritten, CollectorExportError> {
    home.prepare()?;
    let form = path_form(paths, || Ok(key_store(home).open_or_create()?.path_key()))?;
    Ok(append_ocsf(&home.audit(), file, &form)?)
}

fn key_store(home: &Home) -> KeyStore {
    KeyStore::new(&home.state, home.has_keyring)
}
