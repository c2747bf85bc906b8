//! Secrets that the desktop's keyring keeps, or an encrypted file where the person chose one, and that settings name without
//! holding them: `keyring:NAME`.
//!
//! - A secret goes into the one server's environment or headers that name it, and nowhere else: no error, log or `Debug` has it, and what
//!   the server writes to standard error, or a remote one answers, has it replaced ([`SecretMask`]).
//! - Without a keyring or file, or with a locked one, there is no secret, and what needs it does not run.
//! - Never decides who may have a secret: the configuration names it, and the trusted process passes it on.
//!
//! ```
//! use ironcurtain_secrets::{Secret, named};
//!
//! let name = named("keyring:github")?;
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
mod mask;
mod name;
mod store;

pub use age::AgeError;
pub use error::{SecretError, SecretFileError, in_time};
pub use fill::{Filled, UnfilledError, filled_env, filled_headers};
pub use keyring::{Keyring, Shelf};
pub use mask::SecretMask;
pub use name::{SecretName, SecretNameError};
pub use store::{SecretPlace, SecretStore};

use std::fmt;
use zeroize::Zeroizing;

/// The mark of a value that is a secret's name.
const MARK: &str = "keyring:";

/// The longest secret, in bytes.
const LONGEST: usize = 64 * 1024;

/// A text that nobody is shown, overwritten in memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text is one from now on.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret in a line that a person typed or piped, without the end of the line.
    ///
    /// # Errors
    /// [`SecretTextError`].
    pub fn typed(text: &str) -> Result<Self, SecretTextError> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err(SecretTextError::Empty);
        }
        if text.len() > LONGEST {
            return Err(SecretTextError::TooLong);
        }
        if text.contains(char::is_control) {
            return Err(SecretTextError::Control);
        }
        Ok(Self::new(text.to_owned()))
    }

    /// The text itself, for whoever needs it.
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

/// Why a text is not kept as a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretTextError {
    /// There is none.
    #[error("nothing was kept: the secret is empty")]
    Empty,
    /// It is too long.
    #[error("nothing was kept: the secret has more than {LONGEST} bytes")]
    TooLong,
    /// It is more than a line.
    #[error("nothing was kept: the secret has a line end or a control character in it")]
    Control,
}

/// The secret that a value is; nothing where it is a plain one.
///
/// # Errors
/// [`SecretNameError`], when what it names can be no secret.
pub fn named(value: &str) -> Result<Option<SecretName>, SecretNameError> {
    value.strip_prefix(MARK).map(SecretName::try_from).transpose()
}

/// The same of a header's value, which may have a word before it: `Bearer keyring:NAME`. The word comes with its blank.
///
/// # Errors
/// As [`named`].
pub fn named_in_header(value: &str) -> Result<Option<(&str, SecretName)>, SecretNameError> {
    let start = match value.split_once(' ') {
        Some((word, rest)) if rest.starts_with(MARK) => word.len() + 1,
        Some(_) | None => 0,
    };
    let (before, rest) = value.split_at(start);
    Ok(named(rest)?.map(|name| (before, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_a_secret_or_is_plain() {
        let name = |text: &str| SecretName::try_from(text).unwrap();
        assert_eq!(named("keyring:github"), Ok(Some(name("github"))));
        assert_eq!(named("plain keyring:github"), Ok(None));
        assert_eq!(named_in_header("Bearer keyring:a.b-c_1"), Ok(Some(("Bearer ", name("a.b-c_1")))));
        assert_eq!(named_in_header("keyring:x"), Ok(Some(("", name("x")))));
        assert_eq!(named_in_header("Bearer abc"), Ok(None));
        for wrong in ["keyring:", "keyring:a b", "keyring:../x", "keyring:a\n"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("s3cret".into()))), "Some(Secret)");
    }

    #[test]
    fn a_secret_is_one_line_of_text_that_is_not_empty() {
        assert_eq!(Secret::typed("key \r\n"), Ok(Secret::new("key ".into())));
        assert_eq!(Secret::typed("\n"), Err(SecretTextError::Empty));
        assert_eq!(Secret::typed("a\nb"), Err(SecretTextError::Control));
        assert_eq!(Secret::typed(&"x".repeat(LONGEST + 1)), Err(SecretTextError::TooLong));
    }
}
