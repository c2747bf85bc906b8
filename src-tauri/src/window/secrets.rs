//! Commands about secrets of servers, which the desktop's keyring keeps.
//!
//! - INVARIANT: no secret goes back to the page: it sets one, and hears names.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use ironcurtain_admin::plain_secrets::{PlainSecret, SecretMove, keep};
use ironcurtain_daemon::consent::visible;
use ironcurtain_daemon::secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};

use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use tauri::State;

/// Plain secrets that wait for the person's yes.
#[derive(Default)]
pub(super) struct SecretMoveDraft(Mutex<Option<SecretMove>>);

/// A secret that stands in settings as it is, by its place.
#[derive(Debug, Serialize)]
pub(super) struct PlainSecretRow {
    server: String,
    place: String,
    /// The name that it will have in the keyring.
    name: String,
}

impl PlainSecretRow {
    pub(super) fn of(plain: &PlainSecret) -> Self {
        Self {
            server: visible::line(&plain.server),
            place: visible::line(&plain.place),
            name: visible::line(plain.name.as_str()),
        }
    }
}

/// The secrets that stand in the file of servers as they are.
#[tauri::command]
pub(super) async fn plan_secret_move(
    state: State<'_, AppState>,
) -> Result<Vec<PlainSecretRow>, CommandError> {
    let home = trusted(&state)?.home;
    let plan = aside(move || SecretMove::plan(&home, None)).await?;
    let rows = plan.secrets.iter().map(PlainSecretRow::of).collect();
    *state.secret_move.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    Ok(rows)
}

#[tauri::command]
pub(super) async fn write_secret_move(state: State<'_, AppState>) -> Result<String, CommandError> {
    let plan = state.secret_move.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let plan = plan.ok_or_else(|| CommandError::malformed("look at the keys again"))?;
    kept(&plan.secrets).await?;
    aside(move || plan.write()).await?;
    Ok("The keyring has them, and the servers name them.".to_owned())
}

/// Puts plain secrets into the keyring.
pub(super) async fn kept(secrets: &[PlainSecret]) -> Result<(), CommandError> {
    if secrets.is_empty() {
        return Ok(());
    }
    let secrets = secrets.to_vec();
    asked(move || keep(&secrets)).await
}

#[tauri::command]
pub(super) async fn secrets() -> Result<Vec<String>, CommandError> {
    let names = asked(|| Keyring::open(Shelf::Secrets)?.list()).await?;
    Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
}

#[tauri::command]
pub(super) async fn set_secret(name: String, value: String) -> Result<(), CommandError> {
    let name = SecretName::try_from(name.as_str()).map_err(CommandError::malformed)?;
    let secret = Secret::typed(&value).map_err(CommandError::malformed)?;
    asked(move || Keyring::open(Shelf::Secrets)?.set(&name, &secret)).await
}

#[tauri::command]
pub(super) async fn remove_secret(name: String) -> Result<(), CommandError> {
    let name = SecretName::try_from(name.as_str()).map_err(CommandError::malformed)?;
    asked(move || Keyring::open(Shelf::Secrets)?.remove(&name)).await
}

async fn asked<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> Result<T, CommandError> {
    in_time(what).await.map_err(CommandError::refused)
}
