//! Commands for servers' secrets, which are stored in the desktop's keyring or in the user's encrypted file.
//!
//! - INVARIANT: no secret or passphrase is sent to the page. The page can send new ones, but receives only names.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::plain_secrets::{PlainSecret, SecretMigration, store_secrets};
use ironcurtain_secrets::{Secret, SecretBackend, SecretError, SecretName, SecretStore, with_unlock_timeout};
use ironcurtain_visible as visible;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// Planned move of unprotected secrets that the user has not confirmed yet.
#[derive(Default)]
pub(super) struct SecretMoveDraft(Mutex<Option<SecretMigration>>);

/// Unprotected secret and its location in the settings.
#[derive(Debug, Serialize)]
pub(super) struct PlainSecretRow {
    server: String,
    place: String,
    /// Name that the secret will have in the keyring.
    name: String,
}

impl PlainSecretRow {
    pub(super) fn of(plain: &PlainSecret) -> Self {
        Self {
            server: visible::line(&plain.server),
            place: visible::line(&plain.field_path),
            name: visible::line(plain.name.as_str()),
        }
    }
}

/// Returns the unprotected secrets in `mcp-servers.json`.
pub(super) async fn plan_secret_move(state: &AppState) -> Result<Vec<PlainSecretRow>, CommandError> {
    let home = trusted(state)?.home;
    let plan = run_blocking(move || SecretMigration::plan(&home, None)).await?;
    let rows = plan.secrets.iter().map(PlainSecretRow::of).collect();
    *state.secret_move.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    Ok(rows)
}

pub(super) async fn write_secret_move(state: &AppState) -> Result<String, CommandError> {
    let plan = state.secret_move.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let plan = plan.ok_or_else(|| {
        CommandError::malformed("the reviewed keys are no longer available; review them again")
    })?;
    store_plain_secrets(state, &plan.secrets).await?;
    run_blocking(move || plan.write()).await?;
    Ok("Moved. The servers now refer to them by name.".to_owned())
}

/// Stores unprotected secrets in the keyring or the encrypted file.
pub(super) async fn store_plain_secrets(
    state: &AppState,
    secrets: &[PlainSecret],
) -> Result<(), CommandError> {
    if secrets.is_empty() {
        return Ok(());
    }
    let secrets = secrets.to_vec();
    with_store(state, move |store| store_secrets(store, &secrets)).await
}

/// Stored secrets, as the page shows them.
#[derive(Debug, Serialize)]
pub(super) struct SecretsView {
    place: SecretStoreState,
    /// Path of the encrypted file. The file may not exist yet.
    file: String,
    /// Names of the secrets. Empty while the file is locked.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SecretStoreState {
    Keyring,
    Locked,
    Unlocked,
    Nowhere,
}

pub(super) async fn secrets(state: &AppState) -> Result<SecretsView, CommandError> {
    with_store(state, |store| {
        let state = match store.backend()? {
            SecretBackend::Keyring => SecretStoreState::Keyring,
            SecretBackend::File { is_locked: true } => SecretStoreState::Locked,
            SecretBackend::File { is_locked: false } => SecretStoreState::Unlocked,
            SecretBackend::Unavailable(_) => SecretStoreState::Nowhere,
        };
        let has_names = matches!(state, SecretStoreState::Keyring | SecretStoreState::Unlocked);
        let names = if has_names { store.list()? } else { Vec::new() };
        let names = names.iter().map(|name| name.as_str().to_owned()).collect();
        Ok(SecretsView { place: state, file: store.path().display().to_string(), names })
    })
    .await
}

pub(super) async fn set_secret(state: &AppState, name: String, value: String) -> Result<(), CommandError> {
    let name = SecretName::try_from(name.as_str()).map_err(CommandError::malformed)?;
    let secret = Secret::parse(Secret::new(value).reveal()).map_err(CommandError::malformed)?;
    with_store(state, move |store| store.set(&name, &secret)).await
}

pub(super) async fn remove_secret(state: &AppState, name: String) -> Result<(), CommandError> {
    let name = SecretName::try_from(name.as_str()).map_err(CommandError::malformed)?;
    with_store(state, move |store| store.remove(&name)).await
}

pub(super) async fn unlock_secrets(state: &AppState, passphrase: String) -> Result<(), CommandError> {
    let passphrase = Secret::new(passphrase);
    with_store(state, move |store| store.unlock(passphrase)).await
}

pub(super) async fn make_secrets_file(state: &AppState, passphrase: String) -> Result<(), CommandError> {
    let passphrase = Secret::parse(Secret::new(passphrase).reveal()).map_err(CommandError::malformed)?;
    with_store(state, move |store| store.create_file(passphrase)).await
}

async fn with_store<T: Send + 'static>(
    state: &AppState,
    what: impl FnOnce(&SecretStore) -> Result<T, SecretError> + Send + 'static,
) -> Result<T, CommandError> {
    let store = trusted(state)?.daemon.secrets();
    with_unlock_timeout(move || what(&store)).await.map_err(CommandError::refused)
}
