//! Names of secrets.

use std::fmt;

/// Maximum length of a name in characters.
const LONGEST: usize = 100;

/// Name of a secret: ASCII letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName(String);

/// Text that is not a valid name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot be the name of a secret; it may have letters, digits, `-`, `_` and `.`, at most {LONGEST}",
    .0.escape_default()
)]
pub struct SecretNameError(String);

impl SecretName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for SecretName {
    type Error = SecretNameError;

    fn try_from(text: &str) -> Result<Self, SecretNameError> {
        let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || text.len() > LONGEST || !text.chars().all(is_taken) {
            return Err(SecretNameError(text.chars().take(LONGEST).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
