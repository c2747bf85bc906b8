//! Exports the audit log to the configured collector and signs the head of the log.
//!
//! - Runs independently of the audit log: no call waits for the export, and a failed export denies no call.
//! - While the export is off, no position is stored, so entries from that time are never exported.

use crate::daemon_state::DaemonState;
use futures_util::FutureExt;
use ironcurtain_audit::Audit;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ExportConfig, ExportedPaths, SessionSettings};
use ironcurtain_export::{
    DeliveryError, DeviceKey, DeviceKeyError, Endpoint, EndpointError, ExportState, Exporter, ExporterParts,
    HeadsFile, KeyStore, PathForm, PathKey, SIGN_EVERY, SignedHead, StateError, random, spread,
};
use ironcurtain_secrets::with_unlock_timeout;
use ironcurtain_services::HealthComponent;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// Delay between attempts to start the export, for example while the keyring is locked.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// Timeout for the export at shutdown.
const EXPORT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Running export.
#[derive(Debug)]
pub(crate) struct RecordExport {
    task: JoinHandle<()>,
    ending: CancellationToken,
}

/// Reason why the export cannot start.
#[derive(Debug, thiserror::Error)]
enum ExportStartError {
    #[error(transparent)]
    Key(#[from] DeviceKeyError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error("a thread failed: {0}")]
    Thread(#[from] JoinError),
}

impl RecordExport {
    /// Starts a task that follows the settings.
    pub(crate) fn start(state: Arc<DaemonState>) -> Self {
        let ending = CancellationToken::new();
        let task = tokio::spawn(follow_settings(state, ending.clone()));
        Self { task, ending }
    }

    /// Signs the last head and sends the last entries, unless the collector does not respond.
    pub(crate) async fn end(self) {
        self.ending.cancel();
        // Remaining entries are sent after the next start.
        let _ = tokio::time::timeout(EXPORT_SHUTDOWN_TIMEOUT, self.task).await;
    }
}

/// Runs the export according to the settings, until `ending` is cancelled.
async fn follow_settings(state: Arc<DaemonState>, ending: CancellationToken) {
    let mut settings = state.services.settings.clone();
    loop {
        let config = settings.borrow_and_update().config.export.clone();
        if config.is_none() {
            state.services.health.set(HealthComponent::Export, None);
            // Without the file, the next export starts after the newest entry.
            let _ = std::fs::remove_file(state.services.home.export_state());
        }
        let exported = async {
            match &config {
                Some(config) => run(&state, config, &ending).await,
                None => ending.cancelled().await,
            }
        };
        tokio::select! {
            () = exported => return,
            () = changed(&mut settings, config.as_ref()) => {}
        }
    }
}

/// Completes when the export settings change.
async fn changed(settings: &mut watch::Receiver<Arc<SessionSettings>>, from: Option<&ExportConfig>) {
    loop {
        if settings.changed().await.is_err() {
            return std::future::pending().await;
        }
        if settings.borrow().config.export.as_ref() != from {
            return;
        }
    }
}

/// Returns the form in which paths are exported. `key` is called only if paths are hashed.
///
/// # Errors
/// Returns the error from `key`.
pub fn path_form(
    paths: ExportedPaths,
    key: impl FnOnce() -> Result<PathKey, DeviceKeyError>,
) -> Result<PathForm, DeviceKeyError> {
    Ok(match paths {
        ExportedPaths::Full => PathForm::Full,
        ExportedPaths::Hashed => PathForm::Hashed(key()?),
        ExportedPaths::None => PathForm::Omitted,
    })
}

/// Exports until `ending` is cancelled. Retries while the key or a secret is not available.
async fn run(state: &Arc<DaemonState>, config: &ExportConfig, ending: &CancellationToken) {
    let (head, heads) = watch::channel(None);
    // The export is opened first so that entries recorded while the key or a secret is unavailable are exported later.
    let mut export = None;
    let (key, exporter) = loop {
        let problem = match start(state, config, heads.clone(), &mut export).await {
            Ok(started) => break started,
            Err(problem) => problem.to_string(),
        };
        let text = format!("The record is not exported: {problem}.");
        state.services.health.set(HealthComponent::Export, Some(text));
        if let Some(export) = &mut export {
            export.failure = Some(problem);
            let (export, file) = (export.clone(), state.services.home.export_state());
            // If writing fails, the only effect is that `export status` does not show the problem.
            let _ = tokio::task::spawn_blocking(move || export.write(&file)).await;
        }
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
    };
    let last = CancellationToken::new();
    let signed = async {
        sign(&state.services.audit, &state.services.home, key, head, ending).await;
        last.cancel();
    };
    tokio::join!(signed, exporter.run(last.clone()));
}

async fn start(
    state: &Arc<DaemonState>,
    config: &ExportConfig,
    head: watch::Receiver<Option<SignedHead>>,
    export: &mut Option<ExportState>,
) -> Result<(DeviceKey, Exporter), ExportStartError> {
    let services = &state.services;
    let backlog = config.backlog_mib << 20;
    let export = match export {
        Some(export) => export,
        None => {
            let (file, log) = (services.home.export_state(), services.home.audit());
            let opened = tokio::task::spawn_blocking(move || ExportState::open(&file, &log, backlog));
            export.insert(opened.await??)
        }
    };
    let (secrets, header_config) = (services.programs.secrets.clone(), config.clone());
    let endpoint = move || {
        let (secrets, config) = (secrets.clone(), header_config.clone());
        async move { Endpoint::filled(&config.url, &config.headers, &secrets).await }
    };
    let first_endpoint = endpoint().await?;
    let store = KeyStore::new(&services.home.state, services.home.has_keyring);
    let key =
        with_unlock_timeout(move || Ok(store.open_or_create())).await.map_err(DeviceKeyError::from)??;
    let (metrics_state, health) = (state.clone(), services.health.clone());
    let parts = ExporterParts {
        endpoint: first_endpoint,
        renew_endpoint: Box::new(move || endpoint().map(Result::ok).boxed()),
        paths: path_form(config.paths, || Ok(key.path_key()))?,
        backlog,
        log: services.home.audit(),
        state: services.home.export_state(),
        instance: key.public().to_string(),
        synced: services.audit.synced(),
        head,
        metrics: Box::new(move || metrics_state.metrics().unwrap_or_default()),
        report_trouble: Box::new(move |trouble| health.set(HealthComponent::Export, trouble)),
    };
    Ok((key, Exporter::new(parts, export.clone())?))
}

/// Signs the head of the log whenever it has changed, and again when `ending` is cancelled.
async fn sign(
    audit: &Audit,
    home: &Home,
    key: DeviceKey,
    head: watch::Sender<Option<SignedHead>>,
    ending: &CancellationToken,
) {
    let (mut signed, file) = (None, Arc::new(HeadsFile::new(home.audit_heads())));
    loop {
        let (written, log_state) = audit.status();
        if log_state.is_ok() && signed.as_ref() != Some(&written) {
            // Signs only entries that are on disk so that a power failure cannot invalidate a signed head.
            let written = audit.flush().await;
            let new = SignedHead::sign(&key, &written, now_ms());
            if let Err(problem) = append(file.clone(), new.clone()).await {
                tracing::error!(%problem, "failed to write the signed head");
            }
            head.send_replace(Some(new));
            signed = Some(written);
        }
        if ending.is_cancelled() {
            return;
        }
        tokio::select! {
            () = ending.cancelled() => {}
            () = tokio::time::sleep(spread(SIGN_EVERY, random())) => {}
        }
    }
}

async fn append(file: Arc<HeadsFile>, head: SignedHead) -> io::Result<()> {
    tokio::task::spawn_blocking(move || file.append(&head)).await.map_err(io::Error::other)?
}
