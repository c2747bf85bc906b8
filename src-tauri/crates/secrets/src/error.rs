//! Errors about secrets, and the timeout for accessing them.

use super::{AgeError, SecretName, SecretNameError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum time to wait for the user to unlock the keyring. The timeout is shorter than the time that a call waits for
/// its server to start.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(25);

/// Reason a secret is not available.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// No Secret Service answers on D-Bus.
    #[error(
        "there is no keyring here, because no Secret Service answers on the session's D-Bus ({0}); start one, such as `gnome-keyring`, in your desktop session, or keep secrets in an encrypted file, which `ironcurtain secrets set NAME` offers"
    )]
    NoKeyring(String),
    /// The keyring is locked, or has no collection, and the user did not unlock it.
    #[error("the keyring is locked or has no collection yet ({0}); unlock it and try again")]
    Locked(String),
    /// The user did not unlock the keyring within `UNLOCK_TIMEOUT`.
    #[error(
        "the keyring did not answer within {n} s, perhaps because it is locked; unlock it and try again",
        n = UNLOCK_TIMEOUT.as_secs()
    )]
    Timeout,
    /// The keyring has no secret with this name.
    #[error("secret `{0}` not found in the keyring; add it with `ironcurtain secrets set {0}`")]
    Missing(SecretName),
    /// The keyring already has a different secret with this name.
    #[error(
        "the keyring already has a different secret `{0}`; check what uses it, and remove it with `ironcurtain secrets remove {0}`"
    )]
    NameInUse(SecretName),
    /// The keyring has several secrets with this name, and it is unknown which one belongs to IronCurtain.
    #[error(
        "the keyring has more than one secret `{0}`; remove it with `ironcurtain secrets remove {0}`, and set it again"
    )]
    Duplicate(SecretName),
    /// The secret is not UTF-8.
    #[error("the secret `{0}` is not text; set it again with `ironcurtain secrets set {0}`")]
    NotUtf8(SecretName),
    /// The encrypted file cannot be used.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The name of the secret is invalid.
    #[error(transparent)]
    Name(#[from] SecretNameError),
    /// The keyring returned another error.
    #[error("failed to access the keyring: {0}")]
    Failed(String),
}

/// Reason the encrypted file cannot be used. The keyring is not used as a fallback.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The passphrase has not been entered.
    #[error(
        "the secrets are locked in the encrypted file `{0}`; unlock it with `ironcurtain secrets unlock`, or in the window under Servers"
    )]
    Locked(PathBuf),
    /// The file cannot be decrypted or encrypted.
    #[error("failed to decrypt `{path}`: {source}; nothing in it was changed")]
    Decrypt {
        /// Path of the encrypted file.
        path: PathBuf,
        /// Decryption or encryption error.
        source: AgeError,
    },
    /// The decrypted contents are not a map of secrets.
    #[error("the encrypted file `{0}` does not contain IronCurtain's secrets; move it to a different folder")]
    InvalidContents(PathBuf),
    /// The file exceeds, or would exceed, the maximum size.
    #[error(
        "the encrypted file `{0}` is, or would become, larger than the limit of 16 MiB; it was not changed"
    )]
    TooLarge(PathBuf),
    /// Reading or writing the file failed.
    #[error("failed to read or write the encrypted file `{path}`: {source}; it was not changed")]
    Io {
        /// Path of the encrypted file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// Failed to read, write or lock the list of logins.
    #[error("failed to read or write `{path}`: {source}")]
    Logins {
        /// Path of the list or of the lock.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// Another task or process did not release the lock on a server's login in time.
    #[error("another change of the login to `{server}` did not finish within {} s; try again", .timeout.as_secs())]
    LoginInUse {
        /// Name of the server.
        server: String,
        /// Time limit for the lock.
        timeout: Duration,
    },
    /// The file has no secret with this name.
    #[error("secret `{0}` not found in the encrypted file; add it with `ironcurtain secrets set {0}`")]
    Missing(SecretName),
    /// The file already has a different secret with this name.
    #[error(
        "the encrypted file already has a different secret `{0}`; check what uses it, and remove it with `ironcurtain secrets remove {0}`"
    )]
    NameInUse(SecretName),
    /// The encrypted file already exists.
    #[error("the encrypted file `{0}` already exists; unlock it with its passphrase")]
    AlreadyExists(PathBuf),
    /// The encrypted file does not exist.
    #[error("the encrypted file `{0}` does not exist; there is nothing to unlock")]
    NotFound(PathBuf),
    /// A keyring is available, which is safer than a file.
    #[error("failed to create the encrypted file: a keyring is available; store secrets there")]
    KeyringAvailable,
    /// The passphrase is shorter than this number of characters.
    #[error("the passphrase is too short: at least {0} characters, such as four words")]
    PassphraseTooShort(usize),
}

/// Runs the blocking function `access`, which accesses the keyring or the file, and waits at most `UNLOCK_TIMEOUT` for it.
///
/// # Errors
/// Returns the error from `access`, or [`SecretError::Timeout`] after a timeout.
pub async fn with_unlock_timeout<T: Send + 'static>(
    access: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> Result<T, SecretError> {
    in_thread(UNLOCK_TIMEOUT, access).await
}

/// Runs a blocking function in its own thread, and waits at most `timeout` for it.
pub(super) async fn in_thread<T: Send + 'static>(
    timeout: Duration,
    access: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> Result<T, SecretError> {
    let (send, result) = oneshot::channel();
    // Uses a separate thread, because a runtime thread would delay shutdown. The result is dropped if the caller has
    // timed out.
    std::thread::Builder::new()
        .name("secrets".to_owned())
        .spawn(move || drop(send.send(access())))
        .map_err(|problem| SecretError::Failed(problem.to_string()))?;
    match tokio::time::timeout(timeout, result).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(SecretError::Failed("the keyring client crashed".to_owned())),
        Err(_) => Err(SecretError::Timeout),
    }
}
