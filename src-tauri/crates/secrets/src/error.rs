//! Why there is no secret, and how long is waited for one.

use super::{AgeError, SecretName, SecretNameError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;

/// The time that the person has to unlock the keyring: less than a call waits for its server to start.
const UNLOCK_BOUND: Duration = Duration::from_secs(25);

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// No program keeps secrets here.
    #[error(
        "there is no keyring here, because no Secret Service answers on the session's D-Bus ({0}); start one, such as `gnome-keyring`, in your desktop session, or keep secrets in an encrypted file, which `ironcurtain secrets set NAME` offers"
    )]
    NoKeyring(String),
    /// It is locked, or the person did not unlock it.
    #[error("the keyring is locked, or has no collection yet ({0}); unlock it, and try again")]
    Locked(String),
    /// Nobody has unlocked it.
    #[error(
        "the keyring did not answer within {n} s, perhaps because it is locked; unlock it, and try again",
        n = UNLOCK_BOUND.as_secs()
    )]
    Slow,
    /// It has none of this name.
    #[error("there is no secret `{0}` in the keyring; put it there with `ironcurtain secrets set {0}`")]
    Missing(SecretName),
    /// It has another one of this name.
    #[error(
        "the keyring has another secret `{0}` already; look what needs it, and take it out with `ironcurtain secrets remove {0}`"
    )]
    Taken(SecretName),
    /// It has several of this name, of which ours cannot be told.
    #[error(
        "the keyring has more than one secret `{0}`; take it out with `ironcurtain secrets remove {0}`, and put it there again"
    )]
    Several(SecretName),
    /// It is no text.
    #[error("the secret `{0}` is no text; put it there again with `ironcurtain secrets set {0}`")]
    NotText(SecretName),
    /// The encrypted file is what has secrets here.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// It can have no such name.
    #[error(transparent)]
    Name(#[from] SecretNameError),
    /// The keyring says something else.
    #[error("the keyring cannot be used: {0}")]
    Failed(String),
}

/// Why the encrypted file gives or takes no secret. No other place is tried then.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// Nobody has typed its passphrase.
    #[error(
        "the secrets are locked in the encrypted file `{0}`; unlock it with `ironcurtain secrets unlock`, or in the window under Servers"
    )]
    Locked(PathBuf),
    /// It does not open.
    #[error("the encrypted file `{path}` does not open: {source}; nothing in it was changed")]
    Unopened {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: AgeError,
    },
    /// It opens, and has something else in it.
    #[error("the encrypted file `{0}` opens, and has no secrets of IronCurtain's in it; move it away")]
    Other(PathBuf),
    /// It is longer than what is read.
    #[error(
        "the encrypted file `{0}` is, or would be, longer than 16 MiB, which is never read; it is as it was"
    )]
    Long(PathBuf),
    /// The disk does not do it.
    #[error("the encrypted file `{path}` cannot be read or written, and is as it was: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// It has none of this name.
    #[error(
        "there is no secret `{0}` in the encrypted file; put it there with `ironcurtain secrets set {0}`"
    )]
    Missing(SecretName),
    /// It has another one of this name.
    #[error(
        "the encrypted file has another secret `{0}` already; look what needs it, and take it out with `ironcurtain secrets remove {0}`"
    )]
    Taken(SecretName),
    /// There is one.
    #[error("the encrypted file `{0}` is there already; unlock it with its passphrase")]
    There(PathBuf),
    /// There is none.
    #[error("there is no encrypted file `{0}`: nothing is to be unlocked")]
    None(PathBuf),
    /// The person has a keyring, which is safer.
    #[error("a keyring keeps the secrets here; no encrypted file is made beside it")]
    KeyringThere,
    /// Everybody would guess it.
    #[error("the passphrase is too short: at least {0} characters, such as four words")]
    Short(usize),
}

/// Runs what asks the keyring or opens the file, and waits for it as long as a person may take.
///
/// # Errors
/// [`SecretError`].
pub async fn in_time<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> Result<T, SecretError> {
    let (send, answer) = oneshot::channel();
    // Not of the runtime, which would wait for it at its end. Who no longer waits has given it up.
    std::thread::Builder::new()
        .name("secrets".to_owned())
        .spawn(move || drop(send.send(ask())))
        .map_err(|problem| SecretError::Failed(problem.to_string()))?;
    match tokio::time::timeout(UNLOCK_BOUND, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(SecretError::Failed("its client broke".to_owned())),
        Err(_) => Err(SecretError::Slow),
    }
}
