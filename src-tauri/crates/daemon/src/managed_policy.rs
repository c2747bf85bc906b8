//! Downloads the organization's bundle and applies its rules.
//!
//! - A bundle is refused unless its signature, sequence number and rules are valid. The previous bundle then stays in
//!   effect.
//! - The reload task loads the stored bundle like any other policy file: it records each change before applying it.

use crate::daemon_state::DaemonState;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_bundle::{BundleClient, BundleStoreError, DownloadError, PolicyBundle, Poller, VerifyingKey};
use ironcurtain_config::home::Home;
use ironcurtain_config::{
    BundleSettings, ConfigError, Managed, ManagedError, ManagedPolicy, PolicySnapshot, SnapshotError,
};
use ironcurtain_export::random;
use ironcurtain_secrets::{FillError, fill_setting};
use ironcurtain_services::HealthComponent;
use ironcurtain_visible as visible;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;
use zeroize::Zeroizing;

/// Delay before an invalid configuration is read again.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// Maximum length of the description of a problem, in characters.
const MAX_PROBLEM_CHARS: usize = 300;

/// Error returned when updating the bundle fails.
#[derive(Debug, thiserror::Error)]
enum UpdateError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Managed(#[from] ManagedError),
    #[error(transparent)]
    Secret(#[from] FillError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error(transparent)]
    Refused(#[from] BundleStoreError),
    #[error("rejected the bundle: {0}")]
    Rules(#[from] SnapshotError),
    #[error("a thread failed: {0}")]
    Thread(#[from] JoinError),
}

impl UpdateError {
    /// Returns the label that the metrics use for this error.
    fn result(&self) -> &'static str {
        match self {
            Self::Refused(_) | Self::Rules(_) => "refused",
            Self::Config(_) | Self::Managed(_) | Self::Secret(_) | Self::Download(_) | Self::Thread(_) => {
                "failed"
            }
        }
    }
}

/// Keeps the organization's bundle up to date until the daemon shuts down.
pub(crate) async fn keep_updated(state: Arc<DaemonState>) {
    let ending = state.services.shutdown.requested.clone();
    tokio::select! {
        () = ending.cancelled() => {}
        () = update_loop(&state) => {}
    }
}

async fn update_loop(state: &Arc<DaemonState>) {
    let mut poller = Poller::default();
    let mut snapshots = state.services.snapshots.clone();
    loop {
        let settings = match load_settings().await {
            Ok(Some(settings)) => settings,
            Ok(None) if !has_bundle_source(state) => {
                // Waits until the settings change, because they can then name a bundle.
                if snapshots.changed().await.is_err() {
                    return;
                }
                continue;
            }
            // If the configuration is removed while the daemon is running, the reload task reports the removal.
            Ok(None) => {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
            Err(problem) => {
                report(state, &Err(problem));
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        report(state, &update(state, &settings, &mut poller).await);
        tokio::time::sleep(poller.pause(settings.interval(), random())).await;
    }
}

/// Returns `true` if the settings in effect name a bundle.
fn has_bundle_source(state: &DaemonState) -> bool {
    state.services.snapshot().managed.as_ref().is_some_and(|managed| managed.managed.bundle.is_some())
}

/// Applies changed settings to existing grants and sessions until the daemon shuts down.
pub(crate) async fn apply_settings(state: Arc<DaemonState>) {
    let services = &state.services;
    let ending = services.shutdown.requested.clone();
    let mut snapshots = services.snapshots.clone();
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        services.grants.limit(max_lifetime(&snapshot));
        if let Some(managed) = &snapshot.managed {
            state.sessions().iter().for_each(|session| session.end_if_refused(&managed.managed));
        }
        let is_shutting_down = tokio::select! {
            () = ending.cancelled() => true,
            changed = snapshots.changed() => changed.is_err(),
        };
        if is_shutting_down {
            return;
        }
    }
}

/// Returns the maximum lifetime of grants, or `None` if it is unlimited.
pub(crate) fn max_lifetime(snapshot: &PolicySnapshot) -> Option<Duration> {
    let minutes = snapshot.managed.as_ref()?.managed.settings.max_grant_minutes?;
    Some(Duration::from_secs(minutes * 60))
}

async fn load_settings() -> Result<Option<BundleSettings>, UpdateError> {
    let managed = tokio::task::spawn_blocking(Managed::load).await??;
    Ok(managed.and_then(|managed| managed.bundle))
}

fn report(state: &DaemonState, updated: &Result<&'static str, UpdateError>) {
    let services = &state.services;
    services.metrics.count_bundle_update(updated.as_ref().map_or_else(UpdateError::result, |result| *result));
    let trouble = updated.as_ref().err().map(|problem| {
        // The problem can contain names from an unverified bundle.
        let problem = visible::head(&visible::line(&problem.to_string()), MAX_PROBLEM_CHARS);
        let until = services.snapshot().managed.as_ref().map(|managed| managed.status_until_update());
        format!("Your organization's rules were not updated: {problem}. {}", until.unwrap_or_default())
    });
    if let Some(trouble) = &trouble {
        tracing::warn!(%trouble, "failed to update the organization's rules");
    }
    services.health.set(HealthComponent::Managed, trouble);
}

async fn update(
    state: &DaemonState,
    settings: &BundleSettings,
    poller: &mut Poller,
) -> Result<&'static str, UpdateError> {
    let file_settings = settings.clone();
    let read = move || Ok::<_, ManagedError>((file_settings.public_key()?, file_settings.token()?));
    let (key, token) = tokio::task::spawn_blocking(read).await??;
    let token = match &settings.token {
        Some(token) => {
            let secrets = &state.services.programs.secrets;
            let token = fill_setting(secrets, ("bundle", "token"), token).await?;
            Some(Zeroizing::new(token.reveal().to_owned()))
        }
        None => token.map(Zeroizing::new),
    };
    let client = BundleClient::new(settings.location()?, token);
    let is_stored =
        state.services.snapshot().managed.as_ref().is_some_and(|managed| managed.bundle.is_some());
    let Some(bytes) = poller.download(&client, settings.interval(), is_stored).await? else {
        return Ok("unchanged");
    };
    let home = state.services.home.clone();
    let kept = tokio::task::spawn_blocking(move || store_bundle(&home, &bytes, &key)).await??;
    poller.accept();
    if kept {
        state.reloader.reload().await;
    }
    Ok(if kept { "new" } else { "unchanged" })
}

/// Verifies and stores a bundle. Returns `false` if it was already stored.
fn store_bundle(home: &Home, bytes: &[u8], key: &VerifyingKey) -> Result<bool, UpdateError> {
    let (store, now) = (ManagedPolicy::store(home), now_ms() / 1000);
    let bundle = PolicyBundle::open(bytes, key, now).map_err(BundleStoreError::from)?;
    ManagedPolicy::check(home, &bundle)?;
    let kept = match store.read(key) {
        Ok(kept) => kept,
        // Treats an invalid bundle as missing. The error is reported when the policy is loaded.
        Err(BundleStoreError::Refused(_)) => None,
        Err(
            problem @ (BundleStoreError::Io { .. }
            | BundleStoreError::Rollback { .. }
            | BundleStoreError::SameSequence(_)),
        ) => return Err(problem.into()),
    };
    store.replace(kept.as_ref(), bytes, key, now)?;
    Ok(kept.as_ref() != Some(&bundle))
}
