//! Stored form of a login: the tokens, the client, and the authorization server that the user approved.

use super::client_choice::ClientChoice;
use super::error::{LoginError, login_command, sanitize};
use oauth2::TokenResponse;
use oauth2::basic::BasicTokenType;
use rmcp::transport::auth::{AuthorizationMetadata, OAuthTokenResponse};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;
use zeroize::{Zeroize, Zeroizing};

/// Lead time for renewing a token before it expires.
const RENEWAL_LEAD: Duration = Duration::from_secs(30);

/// Login to one server. Its secrets are overwritten in memory on drop.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredLogin {
    /// Id of the entry in the list of logins. If the ids differ, these tokens are from a different login.
    pub(super) id: String,
    /// URL of the server that receives the access token.
    pub(super) url: String,
    /// Resource indicator of the server (RFC 8707).
    pub(super) resource: String,
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) token_endpoint_auth_methods: Vec<String>,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    /// Redirect address that the user registered for the client, or `None` for a random port.
    #[serde(default)]
    pub(super) redirect: Option<String>,
    /// `true` if the user provided the client, `false` if IronCurtain registered it.
    pub(super) is_own_client: bool,
    /// Scopes that the user approved. Replaced by the granted scopes once they are known. Empty if none were named.
    pub(super) scopes: Vec<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Expiry time of the access token, in seconds since the Unix epoch.
    pub(super) expires_at: Option<u64>,
}

impl StoredLogin {
    /// Parses a stored login. Returns `None` if it is invalid.
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

    /// Returns the time at which the user must log in again, in seconds since the Unix epoch, or `None` if the login
    /// can be renewed or does not expire.
    #[must_use]
    pub fn login_expires_at(&self) -> Option<u64> {
        self.expires_at.filter(|_| self.refresh_token.is_none())
    }

    /// Serializes the login, including its secrets.
    #[must_use]
    pub fn to_json(&self) -> Zeroizing<String> {
        Zeroizing::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the tokens and the client secret.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let others = self.refresh_token.iter().chain(&self.client_secret);
        std::iter::once(&self.access_token).chain(others).map(String::as_str)
    }

    /// Returns the id of the client.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the authorization server's issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.issuer.as_deref().unwrap_or(&self.token_endpoint)
    }

    /// Returns the scopes of the tokens. Empty if none were named.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns `true` if the user provided the client, `false` if IronCurtain registered it for this login.
    #[must_use]
    pub fn is_own_client(&self) -> bool {
        self.is_own_client
    }

    /// Returns the client that the user provided, or `None` if IronCurtain registered the client.
    #[must_use]
    pub fn own_client(&self) -> Option<ClientChoice> {
        self.is_own_client.then(|| ClientChoice {
            client_id: Some(self.client_id.clone()),
            client_secret: self.client_secret.clone(),
            issuer: Some(self.issuer().to_owned()),
            redirect: self.redirect.as_ref().and_then(|redirect| redirect.parse().ok()),
            scopes: None,
        })
    }

    /// Returns `true` if the access token has expired or is about to expire.
    pub(super) fn is_expiring(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= (now() + RENEWAL_LEAD).as_secs())
    }

    /// Returns `true` if the access token has not expired.
    pub(super) fn is_valid(&self) -> bool {
        self.expires_at.is_none_or(|at| at > now().as_secs())
    }

    /// Sets the first tokens and their scopes.
    ///
    /// # Errors
    /// Returns [`LoginError::Scope`] if the tokens have scopes that the user did not approve. The tokens are set
    /// nevertheless, so that the caller can revoke them.
    pub(super) fn set_first_tokens(
        &mut self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<(), LoginError> {
        self.set_tokens(response)?;
        if let Some(granted) = self.granted_scopes(server, response)? {
            self.scopes = granted;
        }
        Ok(())
    }

    /// Sets renewed tokens, keeping the scopes.
    ///
    /// # Errors
    /// Returns [`LoginError::Scope`] if the tokens have scopes that the previous tokens did not have. The tokens are set
    /// nevertheless, so that the caller can revoke them.
    pub(super) fn set_renewed_tokens(
        &mut self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<(), LoginError> {
        self.set_tokens(response)?;
        self.granted_scopes(server, response).map(drop)
    }

    /// Returns the scopes that a response names, or `None` if it names none. Returns an error if a scope is not in
    /// `self.scopes`.
    fn granted_scopes(
        &self,
        server: &str,
        response: &OAuthTokenResponse,
    ) -> Result<Option<Vec<String>>, LoginError> {
        let is_known = |scope: &str| self.scopes.iter().any(|known| known == scope);
        let mut granted: Vec<&str> = Vec::new();
        for scope in response.scopes().into_iter().flatten() {
            // Some servers separate scopes with commas, although a scope itself may contain a comma.
            let separators: &[char] = if is_known(scope) { &[] } else { &[','] };
            granted.extend(scope.split(separators).filter(|scope| !scope.is_empty()));
        }
        let extra: Vec<&str> = granted.iter().copied().filter(|scope| !is_known(scope)).collect();
        if !self.scopes.is_empty() && !extra.is_empty() {
            let all = self.scopes.iter().map(String::as_str).chain(extra.iter().copied());
            let command = login_command(server, all);
            return Err(LoginError::Scope { extra: sanitize(&extra.join(" ")), command });
        }
        let granted: Vec<String> = granted.into_iter().map(str::to_owned).collect();
        Ok(Some(granted).filter(|granted| !granted.is_empty()))
    }

    fn set_tokens(&mut self, response: &OAuthTokenResponse) -> Result<(), LoginError> {
        let token = response.access_token().secret();
        let is_valid_header = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if *response.token_type() != BasicTokenType::Bearer || !is_valid_header {
            let reason = "the authorization server issued no bearer token (RFC 6750)".to_owned();
            return Err(LoginError::Step { step: "using the token", reason });
        }
        self.access_token = response.access_token().secret().clone();
        if let Some(refresh) = response.refresh_token() {
            self.refresh_token = Some(refresh.secret().clone());
        }
        self.expires_at = response.expires_in().map(|after| now().saturating_add(after).as_secs());
        Ok(())
    }

    /// Returns the authorization server's metadata that a renewal needs.
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

    /// Returns the resource indicator exactly as it was sent for the login.
    pub(super) fn resource_text(&self) -> &str {
        &self.resource
    }

    /// Returns the resource indicator as a URL.
    pub(super) fn resource(&self) -> Option<Url> {
        Url::parse(&self.resource).ok()
    }
}

/// Metadata field with the supported client authentication methods.
pub(super) const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

impl Drop for StoredLogin {
    fn drop(&mut self) {
        self.access_token.zeroize();
        self.refresh_token.zeroize();
        self.client_secret.zeroize();
    }
}

/// Omits all secrets.
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
