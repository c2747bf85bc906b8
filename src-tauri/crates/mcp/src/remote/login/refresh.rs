//! Renews the access token of a stored login.

use super::error::{LoginError, RENEWING};
use super::http_client::LoginHttpClient;
use super::stored::StoredLogin;
use super::{LoginServer, without_logging};
use oauth2::basic::BasicTokenType;
use oauth2::{AccessToken, RefreshToken};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
    OAuthTokenResponse, StoredCredentials, VendorExtraTokenFields,
};
use std::sync::Arc;

/// Error returned when a renewal fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefreshError {
    /// The new tokens have scopes that the user did not approve.
    #[error("{problem}")]
    Scope {
        /// Names the scopes.
        problem: LoginError,
        /// The new tokens, without a refresh token that is still in use.
        unused: Box<StoredLogin>,
    },
    /// There are no new tokens.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// Exchanges the refresh token for new tokens.
///
/// # Errors
/// Returns [`LoginError::Expired`] if the user must log in again, or another error if the request fails.
pub(super) async fn refresh_tokens(
    server: &LoginServer,
    login: &StoredLogin,
) -> Result<StoredLogin, RefreshError> {
    let expired = || LoginError::Expired { server: server.name.clone() };
    let (Some(refresh), Some(resource)) = (&login.refresh_token, login.resource()) else {
        return Err(expired().into());
    };
    let http = Arc::new(LoginHttpClient::new(server.clone()).with_resource(login.resource_text()));
    let sender = http.clone();
    let refreshed = without_logging(async {
        let mut manager = AuthorizationManager::new_with_oauth_http_client(resource, sender).await?;
        manager.set_metadata(login.metadata());
        let mut client = OAuthClientConfig::new(login.client_id.as_str(), "http://127.0.0.1/callback");
        if let Some(secret) = &login.client_secret {
            client = client.with_client_secret(secret);
        }
        manager.configure_client(client)?;
        let token = AccessToken::new(login.access_token.clone());
        let mut tokens =
            OAuthTokenResponse::new(token, BasicTokenType::Bearer, VendorExtraTokenFields::default());
        tokens.set_refresh_token(Some(RefreshToken::new(refresh.clone())));
        let store = InMemoryCredentialStore::new();
        store
            .save(StoredCredentials::new(login.client_id.clone(), Some(tokens), login.scopes.clone(), None))
            .await?;
        manager.set_credential_store(store);
        manager.refresh_token().await
    });
    let sent = [refresh.as_str(), login.client_secret.as_deref().unwrap_or_default()];
    let response = refreshed.await.map_err(|problem| {
        let is_expired =
            matches!(problem, AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired);
        // The authorization server no longer knows or accepts the client.
        let is_expired = is_expired
            || http.error().is_some_and(|code| ["invalid_client", "unauthorized_client"].contains(&&*code));
        if is_expired { expired() } else { LoginError::from_auth_error(RENEWING, &problem, server, &sent) }
    })?;
    let mut renewed = login.clone();
    match renewed.set_renewed_tokens(&server.name, &response) {
        Ok(()) => Ok(renewed),
        Err(problem @ LoginError::Scope { .. }) => {
            renewed.refresh_token.take_if(|token| Some(&*token) == login.refresh_token.as_ref());
            Err(RefreshError::Scope { problem, unused: Box::new(renewed) })
        }
        Err(problem) => Err(problem.into()),
    }
}
