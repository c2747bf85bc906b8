//! Commands about secrets of servers, which the desktop's keyring keeps.
//!
//! - INVARIANT: no secret goes back to the page: it sets one, and hears names.

use super::command_error::CommandError;
use ironcurtain_daemon::secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};

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
