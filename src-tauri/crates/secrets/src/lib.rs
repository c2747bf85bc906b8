//! Secrets for servers, stored in the desktop's keyring or, if the user chose it, in an encrypted file. Settings refer
//! to a secret by name: `keyring:NAME`.
//!
//! - A secret is passed only to the environment or headers of the server that refers to it. No error, log or
//!   `Debug` output contains it, and [`SecretMask`] replaces it in a server's standard error and in a remote
//!   server's responses.
//! - A server that needs a secret does not start if the keyring or file is locked or missing.
//! - This crate does not decide which server may use a secret; the configuration does.
//!
//! ```
//! use ironcurtain_secrets::{Secret, secret_reference};
//!
//! let name = secret_reference("keyring:github")?;
//! assert!(name.is_some(), "the setting names a secret");
//! let token = Secret::new("ghp_0123456789".into());
//! assert_eq!(format!("{token:?}"), "Secret");
//! # Ok::<(), ironcurtain_secrets::SecretNameError>(())
//! ```

mod age;
mod error;
mod file;
mod fill;
mod keyring;
mod login;
mod mask;
mod name;
mod store;

pub use age::AgeError;
pub use error::{SecretError, SecretFileError, with_unlock_timeout};
pub use fill::{FillError, FilledSettings, fill_env, fill_headers, fill_setting};
pub use keyring::{Keyring, KeyringSection};
pub use login::{LoginLock, LoginRecord, Logins};
pub use mask::SecretMask;
pub use name::{SecretName, SecretNameError};
pub use store::{SecretBackend, SecretStore};

use std::fmt;
use zeroize::Zeroizing;

/// Prefix of a setting's value that refers to a secret.
const REFERENCE_PREFIX: &str = "keyring:";

/// Maximum length of a secret in bytes.
const MAX_LEN: usize = 64 * 1024;

/// Secret text, overwritten in memory on drop. Its `Debug` output omits the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a secret from text without checking it.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Parses a secret from a line that was typed or piped, removing the line end.
    ///
    /// # Errors
    /// Returns [`SecretTextError`] if the text is empty, too long, or contains a control character.
    pub fn parse(text: &str) -> Result<Self, SecretTextError> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err(SecretTextError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(SecretTextError::TooLong);
        }
        if text.contains(char::is_control) {
            return Err(SecretTextError::Control);
        }
        Ok(Self::new(text.to_owned()))
    }

    /// Returns the secret as plain text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Reason a text cannot be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretTextError {
    /// The text is empty.
    #[error("nothing was stored: the secret is empty")]
    Empty,
    /// The text is too long.
    #[error("nothing was stored: the secret is longer than {MAX_LEN} bytes")]
    TooLong,
    /// The text contains a line end or another control character.
    #[error("nothing was stored: the secret contains a line end or control character")]
    Control,
}

/// Returns the name of the secret to which a setting's value refers, or `None` if the value is not a reference.
///
/// # Errors
/// Returns [`SecretNameError`] if the name is invalid.
pub fn secret_reference(value: &str) -> Result<Option<SecretName>, SecretNameError> {
    value.strip_prefix(REFERENCE_PREFIX).map(SecretName::try_from).transpose()
}

/// Parses a header value that may have a scheme before the reference, as in `Bearer keyring:NAME`. Returns the
/// scheme, including the space, and the name.
///
/// # Errors
/// Returns the same errors as [`secret_reference`].
pub fn secret_reference_in_header(value: &str) -> Result<Option<(&str, SecretName)>, SecretNameError> {
    let start = match value.split_once(' ') {
        Some((word, rest)) if rest.starts_with(REFERENCE_PREFIX) => word.len() + 1,
        Some(_) | None => 0,
    };
    let (scheme, rest) = value.split_at(start);
    Ok(secret_reference(rest)?.map(|name| (scheme, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_a_secret_or_is_plain() {
        let name = |text: &str| SecretName::try_from(text).unwrap();
        assert_eq!(secret_reference("keyring:github"), Ok(Some(name("github"))));
        assert_eq!(secret_reference("plain keyring:github"), Ok(None));
        assert_eq!(
            secret_reference_in_header("Bearer keyring:a.b-c_1"),
            Ok(Some(("Bearer ", name("a.b-c_1"))))
        );
        assert_eq!(secret_reference_in_header("keyring:x"), Ok(Some(("", name("x")))));
        assert_eq!(secret_reference_in_header("Bearer abc"), Ok(None));
        for wrong in ["keyring:", "keyring:a b", "keyring:../x", "keyring:a\n"] {
            assert!(secret_reference(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("s3cret".into()))), "Some(Secret)");
    }

    #[test]
    fn a_secret_is_one_line_of_text_that_is_not_empty() {
        assert_eq!(Secret::parse("key \r\n"), Ok(Secret::new("key ".into())));
        assert_eq!(Secret::parse("\n"), Err(SecretTextError::Empty));
        assert_eq!(Secret::parse("a\nb"), Err(SecretTextError::Control));
        assert_eq!(Secret::parse(&"x".repeat(MAX_LEN + 1)), Err(SecretTextError::TooLong));
    }
}
