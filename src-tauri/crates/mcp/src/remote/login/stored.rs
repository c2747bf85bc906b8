//! A login as it is stored: the client, its tokens, and the authorization server that the user approved.

use super::error::{LoginError, login_command, said};
use oauth2::TokenResponse;
use rmcp::transport::auth::{AuthorizationMetadata, OAuthTokenResponse};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;
use zeroize::{Zeroize, Zeroizing};

/// A token is renewed this long before it expires.
const EARLY: Duration = Duration::from_secs(30);

/// Tokens for one server. Overwritten in memory on drop.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredLogin {
    /// Id of the entry in the list of logins. Tokens with another id belong to an earlier login.
    pub(super) id: String,
    /// Address of the server that gets the access token.
    pub(super) url: String,
    /// Identifier of the server at the authorization server (RFC 8707).
    pub(super) resource: String,
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) token_endpoint_auth_methods: Vec<String>,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    /// The client was given by the user, not registered by us.
    pub(super) is_own_client: bool,
    /// Scopes of the tokens: first those that the user approved, then those that were granted. Empty if nobody named any.
    pub(super) scopes: Vec<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
}

impl StoredLogin {
    /// Parses a stored login. Returns `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Sets the id of the entry in the list of logins.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// Returns the id of the entry in the list of logins.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time at which the user must log in again, in seconds since 1970; `None` if it is unknown because the login is
    /// renewed.
    #[must_use]
    pub fn ends_at(&self) -> Option<u64> {
        self.expires_at.filter(|_| self.refresh_token.is_none())
    }

    /// Returns the form that is stored. It is secret.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let others = self.refresh_token.iter().chain(&self.client_secret);
        std::iter::once(&self.access_token).chain(others).map(String::as_str)
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the authorization server.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.issuer.as_deref().unwrap_or(&self.token_endpoint)
    }

    /// Returns the scopes of the tokens; empty if nobody named any.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the client that the user gave, and its secret.
    #[must_use]
    pub fn own_client(&self) -> Option<(&str, Option<&str>)> {
        self.is_own_client.then_some((self.client_id.as_str(), self.client_secret.as_deref()))
    }

    /// Returns whether the access token expires soon.
    pub(super) fn is_expiring(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= (now() + EARLY).as_secs())
    }

    /// Returns whether the access token has not expired yet.
    pub(super) fn is_valid(&self) -> bool {
        self.expires_at.is_none_or(|at| at > now().as_secs())
    }

    /// Takes the tokens of a login and their scopes, unless they allow more than what the user approved.
    ///
    /// # Errors
    /// [`LoginError::Scope`].
    pub(super) fn take_first(
        &mut self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<(), LoginError> {
        let granted = self.granted(server, response)?;
        self.take(response);
        if let Some(granted) = granted {
            self.scopes = granted;
        }
        Ok(())
    }

    /// Takes the tokens of a renewal, unless they allow more than the earlier ones.
    ///
    /// # Errors
    /// [`LoginError::Scope`].
    pub(super) fn take_renewed(
        &mut self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<(), LoginError> {
        self.granted(server, response)?;
        self.take(response);
        Ok(())
    }

    /// Returns the scopes that a response names, if each is among those of the tokens.
    fn granted(
        &self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<Option<Vec<String>>, LoginError> {
        let is_known = |scope: &str| self.scopes.iter().any(|known| known == scope);
        let mut granted: Vec<&str> = Vec::new();
        for scope in response.scopes().into_iter().flatten() {
            // Some servers separate scopes with commas, although a scope may contain one.
            let separators: &[char] = if is_known(scope) { &[] } else { &[','] };
            granted.extend(scope.split(separators).filter(|scope| !scope.is_empty()));
        }
        let extra: Vec<&str> = granted.iter().copied().filter(|scope| !is_known(scope)).collect();
        if !self.scopes.is_empty() && !extra.is_empty() {
            let all = self.scopes.iter().map(String::as_str).chain(extra.iter().copied());
            let command = login_command(server, all);
            return Err(LoginError::Scope { extra: said(&extra.join(" ")), command });
        }
        let granted: Vec<String> = granted.into_iter().map(str::to_owned).collect();
        Ok(Some(granted).filter(|granted| !granted.is_empty()))
    }

    fn take(&mut self, response: &OAuthTokenResponse) {
        self.access_token = response.access_token().secret().clone();
        if let Some(refresh) = response.refresh_token() {
            self.refresh_token = Some(refresh.secret().clone());
        }
        self.expires_at = response.expires_in().map(|after| now().saturating_add(after).as_secs());
    }

    /// Returns the metadata of the authorization server as far as a refresh needs it.
    pub(super) fn metadata(&self) -> AuthorizationMetadata {
        let mut metadata = AuthorizationMetadata::default();
        metadata.authorization_endpoint.clone_from(&self.authorization_endpoint);
        metadata.token_endpoint.clone_from(&self.token_endpoint);
        metadata.issuer.clone_from(&self.issuer);
        let methods = serde_json::json!(self.token_endpoint_auth_methods);
        if !self.token_endpoint_auth_methods.is_empty() {
            metadata.additional_fields.insert(AUTH_METHODS.to_owned(), methods);
        }
        metadata
    }

    /// Returns the resource as the base address of a refresh.
    pub(super) fn resource(&self) -> Option<Url> {
        Url::parse(&self.resource).ok()
    }
}

/// Key of the metadata with the ways in which a client proves its identity.
pub(super) const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

impl Drop for StoredLogin {
    fn drop(&mut self) {
        self.access_token.zeroize();
        self.refresh_token.zeroize();
        self.client_secret.zeroize();
    }
}

/// Omits the tokens.
impl fmt::Debug for StoredLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredLogin")
            .field("url", &self.url)
            .field("issuer", &self.issuer())
            .finish_non_exhaustive()
    }
}

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
