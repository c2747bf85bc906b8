//! Errors of secrets, and the time limit for waiting for them.

use super::{AgeError, SecretName, SecretNameError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time for the user to unlock the keyring: less than a call waits for its server to start.
const UNLOCK_BOUND: Duration = Duration::from_secs(25);

/// Reason that a secret is not available.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// No Secret Service runs here.
    #[error(
        "there is no keyring here, because no Secret Service answers on the session's D-Bus ({0}); start one, such as `gnome-keyring`, in your desktop session, or keep secrets in an encrypted file, which `ironcurtain secrets set NAME` offers"
    )]
    NoKeyring(String),
    /// The keyring is locked, and the user did not unlock it.
    #[error("the keyring is locked or has no collection yet ({0}); unlock it and try again")]
    Locked(String),
    /// The user did not unlock it in time.
    #[error(
        "the keyring did not answer within {n} s, perhaps because it is locked; unlock it and try again",
        n = UNLOCK_BOUND.as_secs()
    )]
    Slow,
    /// The keyring has no secret with this name.
    #[error("there is no secret `{0}` in the keyring; put it there with `ironcurtain secrets set {0}`")]
    Missing(SecretName),
    /// The keyring has a different secret with this name.
    #[error(
        "the keyring already has a different secret `{0}`; check what uses it, and remove it with `ironcurtain secrets remove {0}`"
    )]
    Taken(SecretName),
    /// The keyring has several secrets with this name, so ours is ambiguous.
    #[error(
        "the keyring has more than one secret `{0}`; remove it with `ironcurtain secrets remove {0}`, and set it again"
    )]
    Several(SecretName),
    /// The secret is not text.
    #[error("the secret `{0}` is not text; set it again with `ironcurtain secrets set {0}`")]
    NotText(SecretName),
    /// The encrypted file failed.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] SecretNameError),
    /// The keyring returned another error.
    #[error("the keyring cannot be used: {0}")]
    Failed(String),
}

/// Error of the encrypted file. No other place is tried then.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The passphrase was not entered.
    #[error(
        "the secrets are locked in the encrypted file `{0}`; unlock it with `ironcurtain secrets unlock`, or in the window under Servers"
    )]
    Locked(PathBuf),
    /// The file cannot be decrypted.
    #[error("failed to decrypt `{path}`: {source}; nothing in it was changed")]
    Unopened {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: AgeError,
    },
    /// The content is not IronCurtain's.
    #[error("the encrypted file `{0}` does not contain IronCurtain's secrets; move it away")]
    Other(PathBuf),
    /// The file exceeds the maximum size.
    #[error(
        "the encrypted file `{0}` is, or would become, larger than the limit of 16 MiB; it was not changed"
    )]
    Long(PathBuf),
    /// Reading or writing the file failed.
    #[error("failed to read or write the encrypted file `{path}`: {source}; it was not changed")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The file has no secret with this name.
    #[error(
        "there is no secret `{0}` in the encrypted file; put it there with `ironcurtain secrets set {0}`"
    )]
    Missing(SecretName),
    /// The file has a different secret with this name.
    #[error(
        "the encrypted file already has a different secret `{0}`; check what uses it, and remove it with `ironcurtain secrets remove {0}`"
    )]
    Taken(SecretName),
    /// The file exists already.
    #[error("the encrypted file `{0}` already exists; unlock it with its passphrase")]
    There(PathBuf),
    /// The file does not exist.
    #[error("the encrypted file `{0}` does not exist; there is nothing to unlock")]
    None(PathBuf),
    /// A keyring is available, which is safer.
    #[error("secrets are in the keyring here; an encrypted file is not created beside it")]
    KeyringThere,
    /// The passphrase is easy to guess.
    #[error("the passphrase is too short: at least {0} characters, such as four words")]
    Short(usize),
}

/// Runs a task that uses the keyring or the file, and waits for it as long as a user may take.
///
/// # Errors
/// [`SecretError`].
pub async fn in_time<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> Result<T, SecretError> {
    let (send, answer) = oneshot::channel();
    // A runtime thread would block shutdown. The result is dropped if the caller gave up.
    std::thread::Builder::new()
        .name("secrets".to_owned())
        .spawn(move || drop(send.send(ask())))
        .map_err(|problem| SecretError::Failed(problem.to_string()))?;
    match tokio::time::timeout(UNLOCK_BOUND, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(SecretError::Failed("the keyring client crashed".to_owned())),
        Err(_) => Err(SecretError::Slow),
    }
}
