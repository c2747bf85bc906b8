//! Names of secrets.

use std::fmt;

/// Prefix of the names under which logins are stored.
const LOGIN: &str = "login:";

/// Maximum length of a name in characters.
const MAX_LEN: usize = 100;

/// Name of a secret: ASCII letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName(String);

/// Error for a text that is not a valid secret name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot be the name of a secret; it may have letters, digits, `-`, `_` and `.`, at most {MAX_LEN}",
    .0.escape_default()
)]
pub struct SecretNameError(String);

impl SecretName {
    /// Returns the name under which a server's login is stored. Settings cannot refer to this name.
    #[must_use]
    pub fn of_login(server: &str) -> Self {
        Self(format!("{LOGIN}{server}"))
    }

    /// Parses the name of a stored secret, including names of logins.
    ///
    /// # Errors
    /// Returns [`SecretNameError`] if the name is invalid.
    pub fn stored(text: &str) -> Result<Self, SecretNameError> {
        let Some(server) = text.strip_prefix(LOGIN) else { return Self::try_from(text) };
        let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if server.is_empty() || !server.chars().all(is_taken) {
            return Err(SecretNameError(text.chars().take(MAX_LEN).collect()));
        }
        Ok(Self::of_login(server))
    }

    /// Returns `true` if this is the name of a login.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.0.starts_with(LOGIN)
    }

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
        if text.is_empty() || text.len() > MAX_LEN || !text.chars().all(is_taken) {
            return Err(SecretNameError(text.chars().take(MAX_LEN).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
