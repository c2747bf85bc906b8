//! Steps of a login: discovers the authorization server, opens the login page, and exchanges the code for tokens.

use super::callback::Callback;
use super::error::{LoginError, said, shown};
use super::http_client::LoginHttpClient;
use super::stored::{AUTH_METHODS, StoredLogin};
use super::{LoginServer, unlogged};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use url::Url;

/// Query parameters that the authorization endpoint's URL must not already contain.
const RESERVED: [&str; 8] = [
    "state",
    "resource",
    "redirect_uri",
    "code_challenge",
    "code_challenge_method",
    "client_id",
    "scope",
    "response_type",
];

/// Client name used for registration.
const CLIENT_NAME: &str = "IronCurtain Desktop";

/// Login that a server offers, before a client is registered.
pub struct LoginOffer {
    server: LoginServer,
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    scopes: Vec<String>,
}

/// Client and scopes for a login.
#[derive(Clone, Default)]
pub struct ClientChoice {
    /// Id of a client that the user registered, or `None` to register one automatically.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<String>,
    /// Authorization server that a stored client id is for.
    pub issuer: Option<String>,
    /// Scopes to request instead of the server's.
    pub scopes: Option<Vec<String>>,
}

/// Login whose page is ready to be opened in a browser.
pub struct BegunLogin {
    server: LoginServer,
    manager: AuthorizationManager,
    page: Url,
    login: StoredLogin,
}

impl LoginOffer {
    /// Discovers the server's authorization server and its metadata. Sends no secrets.
    ///
    /// # Errors
    /// Returns [`LoginError`] if the server offers no login, or if an endpoint's URL is not allowed.
    pub async fn discover(server: LoginServer) -> Result<Self, LoginError> {
        let http = Arc::new(LoginHttpClient::new(server.clone()));
        let failed =
            |problem| LoginError::of("reading where to log in", &problem, &server, &[]).or_a_token(&server);
        let discovered = unlogged(async {
            let client = http.clone();
            let mut manager =
                AuthorizationManager::new_with_oauth_http_client(server.url.clone(), client).await?;
            let resolved = manager.resolve_metadata().await?;
            let found = http.found();
            manager.set_metadata(resolved.metadata.clone());
            let scopes = manager.select_initial_scopes(&[]).await;
            Ok::<_, AuthError>((manager, resolved, found, scopes))
        });
        let (manager, resolved, found, scopes) = discovered.await.map_err(failed)?;
        if !resolved.source.is_discovered() {
            return Err(LoginError::NotOffered { url: shown(&server.url) });
        }
        let metadata = resolved.metadata;
        check_issuer(&metadata, found.as_ref())?;
        let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            let issuer = said(metadata.issuer.as_deref().unwrap_or_default());
            return Err(LoginError::NoPkce { issuer, url: shown(&server.url) });
        }
        for endpoint in endpoints(&metadata) {
            checked(&server, endpoint)?;
        }
        check_query(&metadata.authorization_endpoint)?;
        Ok(Self { server, manager, metadata, scopes })
    }

    /// Returns the authorization server's issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.metadata.issuer.as_deref().unwrap_or(&self.metadata.authorization_endpoint)
    }

    /// Returns the host of the login page.
    #[must_use]
    pub fn page_host(&self) -> String {
        host(&self.metadata.authorization_endpoint).unwrap_or_default()
    }

    /// Returns the hosts of all endpoints, except the issuer's host.
    #[must_use]
    pub fn other_hosts(&self) -> Vec<String> {
        let issuer = host(self.issuer());
        let hosts: BTreeSet<String> =
            endpoints(&self.metadata).filter_map(host).filter(|one| Some(one) != issuer.as_ref()).collect();
        hosts.into_iter().collect()
    }

    /// Returns `true` if the authorization server and the MCP server have different hosts.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        Url::parse(self.issuer()).ok().is_none_or(|issuer| issuer.host_str() != self.server.url.host_str())
    }

    /// Returns the scopes to request. Empty if neither the user nor the server names any.
    #[must_use]
    pub fn scopes<'a>(&'a self, choice: &'a ClientChoice) -> &'a [String] {
        choice.scopes.as_deref().unwrap_or(&self.scopes)
    }

    /// Checks that a client is available for this authorization server.
    ///
    /// # Errors
    /// Returns [`LoginError::NeedsClient`] if the user must register a client, or [`LoginError::OtherIssuer`] if the
    /// stored client is for another authorization server.
    pub fn check(&self, choice: &ClientChoice) -> Result<(), LoginError> {
        let now = self.issuer();
        if let Some(before) = choice.issuer.as_deref().filter(|before| *before != now) {
            let (server, before, now) = (self.server.name.clone(), said(before), said(now));
            return Err(LoginError::OtherIssuer { server, before, now });
        }
        if choice.client_id.is_none() && self.metadata.registration_endpoint.is_none() {
            let (server, url) = (self.server.name.clone(), shown(&self.server.url));
            return Err(LoginError::NeedsClient { issuer: said(now), server, url });
        }
        Ok(())
    }

    /// Registers a client if necessary and prepares the login page. Call this only after the user approved the offer.
    ///
    /// # Errors
    /// Returns the errors of [`Self::check`], or [`LoginError::Step`] if the registration fails.
    pub async fn begin(self, choice: ClientChoice, redirect: &str) -> Result<BegunLogin, LoginError> {
        self.check(&choice)?;
        let scopes = self.scopes(&choice).to_vec();
        let ClientChoice { client_id, client_secret, .. } = choice;
        let is_own_client = client_id.is_some();
        let Self { server, mut manager, metadata, .. } = self;
        let named: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let begun = unlogged(async {
            let client = match client_id {
                Some(id) => {
                    let mut client = OAuthClientConfig::new(id, redirect);
                    client.client_secret = client_secret;
                    manager.configure_client(client.clone())?;
                    client
                }
                None => manager.register_client(CLIENT_NAME, redirect, &named).await?,
            };
            Ok::<_, AuthError>((client, manager.get_authorization_url(&named).await?))
        });
        let begun = begun.await;
        let (client, page) =
            begun.map_err(|problem| LoginError::of("starting the login", &problem, &server, &[]))?;
        let page = checked(&server, &page)?;
        let value =
            |key: &str| page.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned());
        let methods = metadata.additional_fields.get(AUTH_METHODS);
        let revocation_endpoint = revocation(&metadata).map(str::to_owned);
        let login = StoredLogin {
            id: String::new(),
            url: server.url.to_string(),
            resource: value("resource").unwrap_or_else(|| server.url.to_string()),
            issuer: metadata.issuer,
            authorization_endpoint: metadata.authorization_endpoint,
            token_endpoint: metadata.token_endpoint,
            token_endpoint_auth_methods: methods
                .cloned()
                .and_then(|all| serde_json::from_value(all).ok())
                .unwrap_or_default(),
            revocation_endpoint,
            client_id: client.client_id,
            client_secret: client.client_secret,
            is_own_client,
            scopes,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        Ok(BegunLogin { server, manager, page, login })
    }
}

impl BegunLogin {
    /// Returns the URL to open in a browser.
    #[must_use]
    pub fn page(&self) -> &Url {
        &self.page
    }

    /// Returns the `state` that the redirect must contain.
    #[must_use]
    pub fn state(&self) -> String {
        self.page
            .query_pairs()
            .find(|(key, _)| key == "state")
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    }

    /// Exchanges the authorization code for tokens.
    ///
    /// # Errors
    /// Returns [`LoginError`] if the redirect names another issuer, or if the authorization server refuses the code or
    /// grants more scopes than requested.
    pub async fn finish(self, callback: Callback) -> Result<StoredLogin, LoginError> {
        let Self { server, manager, mut login, .. } = self;
        let Callback { code, state, issuer } = callback;
        let exchanged = manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        let response = unlogged(exchanged).await;
        let step = "exchanging the code for a token";
        let sent = [code.as_str(), login.client_secret.as_deref().unwrap_or_default()];
        let response = response.map_err(|problem| LoginError::of(step, &problem, &server, &sent))?;
        login.take_first(&server.name, &response)?;
        Ok(login)
    }
}

/// Name of the step that checks the metadata, for error messages.
const CHECKING: &str = "checking the authorization server's addresses";

fn checked(server: &LoginServer, url: &str) -> Result<Url, LoginError> {
    let failed = |reason: String| LoginError::Step { step: CHECKING, reason };
    let parsed = Url::parse(url).map_err(|_| failed(format!("`{}` is not an address", said(url))))?;
    server.checked(&parsed).map_err(|problem| failed(said(&problem.to_string())))?;
    Ok(parsed)
}

/// Checks that the metadata names an issuer with the same origin as the URL that it was read from.
fn check_issuer(metadata: &AuthorizationMetadata, found: Option<&Url>) -> Result<(), LoginError> {
    let expected = found.map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let received = metadata.issuer.as_deref();
    let is_same = |issuer: &str| {
        let origin = Url::parse(issuer).ok().map(|issuer| issuer.origin());
        origin.is_some_and(|origin| origin.is_tuple() && found.is_some_and(|found| found.origin() == origin))
    };
    if received.is_some_and(is_same) {
        return Ok(());
    }
    Err(LoginError::Issuer { expected: said(&expected), received: said(received.unwrap_or("nobody")) })
}

/// Checks that the authorization endpoint's URL contains no parameter that the login itself sets.
fn check_query(endpoint: &str) -> Result<(), LoginError> {
    let url = Url::parse(endpoint).ok();
    let mut pairs = url.iter().flat_map(Url::query_pairs);
    let Some((key, _)) = pairs.find(|(key, _)| RESERVED.contains(&&**key)) else { return Ok(()) };
    let reason = format!("the authorization endpoint has a parameter `{key}` of its own");
    Err(LoginError::Step { step: CHECKING, reason })
}

/// Returns the URLs of all endpoints that the login may contact or open.
fn endpoints(metadata: &AuthorizationMetadata) -> impl Iterator<Item = &str> {
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    let endpoints = endpoints.into_iter().chain(&metadata.registration_endpoint).map(String::as_str);
    endpoints.chain(revocation(metadata))
}

fn revocation(metadata: &AuthorizationMetadata) -> Option<&str> {
    metadata.additional_fields.get("revocation_endpoint")?.as_str()
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
