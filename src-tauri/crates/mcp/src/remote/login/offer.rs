//! Steps of a login: discovers the authorization server, opens the login page, and exchanges the code for tokens.

use super::callback::Callback;
use super::client_choice::ClientChoice;
use super::error::{LoginError, sanitize, without_query};
use super::http_client::LoginHttpClient;
use super::stored::{AUTH_METHODS, StoredLogin};
use super::{LoginServer, without_logging};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Query parameters that the authorization endpoint's URL must not already contain. The last five change the request or
/// its response in a way that the user does not see (RFC 9101, RFC 9396, OpenID Connect).
const RESERVED: [&str; 13] = [
    "state",
    "resource",
    "redirect_uri",
    "code_challenge",
    "code_challenge_method",
    "client_id",
    "scope",
    "response_type",
    "request",
    "request_uri",
    "response_mode",
    "authorization_details",
    "claims",
];

/// Client name used for registration.
const CLIENT_NAME: &str = "IronCurtain Desktop";

/// Timeout for the whole discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of the requested scopes and of the issuer, in bytes. The user must be able to read them.
const MAX_SHOWN_LEN: usize = 1000;

/// Login that a server offers, before a client is registered.
pub struct LoginOffer {
    server: LoginServer,
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    /// Resource indicator for which the token is valid (RFC 8707).
    resource: String,
    scopes: Vec<String>,
}

/// Login whose page is ready to be opened in a browser.
pub struct StartedLogin {
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
        let failed = |problem| {
            LoginError::from_auth_error(DISCOVERING, &problem, &server, &[]).with_token_advice(&server)
        };
        // The manager sends its URL to the authorization server as the resource. A query may contain an API key.
        let mut base = server.url.clone();
        base.set_query(None);
        base.set_fragment(None);
        let discovered = without_logging(async {
            let client = http.clone();
            let mut manager = AuthorizationManager::new_with_oauth_http_client(base.clone(), client).await?;
            let resolved = manager.resolve_metadata().await?;
            let metadata_url = http.metadata_url();
            manager.set_metadata(resolved.metadata.clone());
            let scopes = manager.select_initial_scopes(&[]).await;
            Ok::<_, AuthError>((manager, resolved, metadata_url, scopes))
        });
        let discovered = tokio::time::timeout(DISCOVERY_TIMEOUT, discovered).await;
        let slow = |_| LoginError::Step {
            step: DISCOVERING,
            reason: format!("no answer within {} s", DISCOVERY_TIMEOUT.as_secs()),
        };
        let (mut manager, resolved, metadata_url, scopes) = discovered.map_err(slow)?.map_err(failed)?;
        if !resolved.source.is_discovered() {
            return Err(LoginError::NotOffered { url: without_query(&server.url) });
        }
        let metadata = resolved.metadata;
        check_issuer(&metadata, metadata_url.as_ref())?;
        let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            let issuer = sanitize(metadata.issuer.as_deref().unwrap_or_default());
            return Err(LoginError::NoPkce { issuer, url: without_query(&server.url) });
        }
        for endpoint in endpoints(&metadata) {
            check_url(&server, endpoint)?;
        }
        check_query(&metadata.authorization_endpoint)?;
        if metadata.issuer.as_ref().is_some_and(|issuer| issuer.len() > MAX_SHOWN_LEN) {
            let reason = "the issuer is too long".to_owned();
            return Err(LoginError::Step { step: CHECKING, reason });
        }
        // The manager exposes the resource only in the URL of a login page.
        let page = without_logging(async {
            manager.configure_client(OAuthClientConfig::new("", "http://127.0.0.1/callback"))?;
            manager.get_authorization_url(&[]).await
        });
        let page = page.await.map_err(failed)?;
        let resource = Url::parse(&page).ok().and_then(|page| parameter(&page, "resource"));
        let resource = resource.unwrap_or_else(|| base.to_string());
        let scopes = scopes.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned).collect();
        Ok(Self { server, manager, metadata, resource, scopes })
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

    /// Returns the host that receives the result of the login and issues the tokens.
    #[must_use]
    pub fn token_host(&self) -> String {
        host(&self.metadata.token_endpoint).unwrap_or_default()
    }

    /// Returns `true` if the login page's host and the host that receives the result are related: they are equal, or
    /// one is a subdomain of the other. If they are unrelated, a hostile authorization server may have named another
    /// service's login page.
    #[must_use]
    pub fn has_related_hosts(&self) -> bool {
        let (page, token) = (self.page_host(), self.token_host());
        let is_subdomain =
            |one: &str, other: &str| one.strip_suffix(other).is_some_and(|rest| rest.ends_with('.'));
        page == token || is_subdomain(&page, &token) || is_subdomain(&token, &page)
    }

    /// Returns the URL for which the token is valid, if it covers more than the server's URL.
    #[must_use]
    pub fn wider_resource(&self) -> Option<&str> {
        let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
        let resource = Url::parse(&self.resource).ok();
        let is_wider = resource.is_none_or(|resource| path(&resource) != path(&self.server.url));
        is_wider.then_some(self.resource.as_str())
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
    pub fn has_other_host(&self) -> bool {
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
    /// Returns [`LoginError::NeedsClient`] if the user must register a client, [`LoginError::OtherIssuer`] if the
    /// stored client is for a different authorization server, or [`LoginError::TooManyScopes`] if the scopes are too
    /// long to show.
    pub fn check(&self, choice: &ClientChoice) -> Result<(), LoginError> {
        let now = self.issuer();
        if let Some(before) = choice.issuer.as_deref().filter(|before| *before != now) {
            let (server, before, now) = (self.server.name.clone(), sanitize(before), sanitize(now));
            return Err(LoginError::OtherIssuer { server, before, now });
        }
        if self.scopes(choice).join(" ").len() > MAX_SHOWN_LEN {
            return Err(LoginError::TooManyScopes { server: self.server.name.clone() });
        }
        if choice.client_id.is_none() && self.metadata.registration_endpoint.is_none() {
            let (server, url) = (self.server.name.clone(), without_query(&self.server.url));
            return Err(LoginError::NeedsClient { issuer: sanitize(now), server, url });
        }
        Ok(())
    }

    /// Registers a client if necessary and prepares the login page. Call this only after the user approved the offer.
    ///
    /// # Errors
    /// Returns the errors of [`Self::check`], or [`LoginError::Step`] if the registration fails.
    pub async fn begin(self, choice: ClientChoice, redirect: &str) -> Result<StartedLogin, LoginError> {
        self.check(&choice)?;
        let scopes = self.scopes(&choice).to_vec();
        let ClientChoice { client_id, client_secret, redirect: own_redirect, .. } = choice;
        let is_own_client = client_id.is_some();
        let Self { server, mut manager, metadata, resource, .. } = self;
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let started = without_logging(async {
            let client = match client_id {
                Some(id) => {
                    let mut client = OAuthClientConfig::new(id, redirect);
                    client.client_secret = client_secret;
                    manager.configure_client(client.clone())?;
                    client
                }
                None => manager.register_client(CLIENT_NAME, redirect, &scope_names).await?,
            };
            Ok::<_, AuthError>((client, manager.get_authorization_url(&scope_names).await?))
        });
        let started = started.await;
        let (client, page) = started
            .map_err(|problem| LoginError::from_auth_error("starting the login", &problem, &server, &[]))?;
        let page = check_url(&server, &page)?;
        let methods = metadata.additional_fields.get(AUTH_METHODS);
        let revocation_endpoint = revocation_endpoint_of(&metadata).map(str::to_owned);
        let login = StoredLogin {
            id: String::new(),
            url: server.url.to_string(),
            resource,
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
            redirect: own_redirect.filter(|_| is_own_client).map(|redirect| redirect.to_string()),
            is_own_client,
            scopes,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        Ok(StartedLogin { server, manager, page, login })
    }
}

impl StartedLogin {
    /// Returns the URL to open in a browser.
    #[must_use]
    pub fn page(&self) -> &Url {
        &self.page
    }

    /// Returns the `state` that the redirect must contain.
    #[must_use]
    pub fn state(&self) -> String {
        parameter(&self.page, "state").unwrap_or_default()
    }

    /// Exchanges the authorization code for tokens.
    ///
    /// # Errors
    /// Returns [`LoginError`] if the redirect names a different issuer, or if the authorization server refuses the code
    /// or grants more scopes than requested.
    pub async fn finish(self, callback: Callback) -> Result<StoredLogin, LoginError> {
        let Self { server, manager, mut login, .. } = self;
        let Callback { code, state, issuer } = callback;
        let exchanged = manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        let response = without_logging(exchanged).await;
        let step = "exchanging the code for a token";
        let sent = [code.as_str(), login.client_secret.as_deref().unwrap_or_default()];
        let response =
            response.map_err(|problem| LoginError::from_auth_error(step, &problem, &server, &sent))?;
        if let Err(problem) = login.set_first_tokens(&server.name, &response) {
            // Tokens of the user's own client may share the OAuth grant of another login.
            if matches!(problem, LoginError::Scope { .. }) && !login.is_own_client() {
                login.revoke(&server).await;
            }
            return Err(problem);
        }
        Ok(login)
    }
}

/// Name of the step that reads the metadata, for error messages.
const DISCOVERING: &str = "discovering the authorization server";

/// Name of the step that checks the metadata, for error messages.
const CHECKING: &str = "checking the authorization server's addresses";

fn check_url(server: &LoginServer, url: &str) -> Result<Url, LoginError> {
    let failed = |reason: String| LoginError::Step { step: CHECKING, reason };
    let parsed = Url::parse(url).map_err(|_| failed(format!("`{}` is not an address", sanitize(url))))?;
    server.check_url(&parsed).map_err(|problem| failed(sanitize(&problem.to_string())))?;
    Ok(parsed)
}

/// Checks that the metadata names an issuer that owns the URL from which the metadata was read.
fn check_issuer(metadata: &AuthorizationMetadata, metadata_url: Option<&Url>) -> Result<(), LoginError> {
    let received = metadata.issuer.as_deref();
    // A URL that is not in its normal form can look like a different host.
    let is_normal =
        |issuer: &Url, text: &str| issuer.as_str().trim_end_matches('/') == text.trim_end_matches('/');
    let issuer = received.and_then(|text| Url::parse(text).ok().filter(|issuer| is_normal(issuer, text)));
    if issuer.zip(metadata_url).is_some_and(|(issuer, metadata_url)| owns_url(&issuer, metadata_url)) {
        return Ok(());
    }
    let expected = metadata_url.map(|url| match url.path().split_once("/.well-known/") {
        Some((tenant, _)) => format!("{}{tenant}", url.origin().ascii_serialization()),
        None => url.origin().ascii_serialization(),
    });
    let (expected, received) =
        (sanitize(&expected.unwrap_or_default()), sanitize(received.unwrap_or("nobody")));
    Err(LoginError::Issuer { expected, received })
}

/// Returns `true` if the issuer has the URL's origin and path. On a host that serves the pages of many users, a user's
/// page is therefore not accepted as metadata of the host itself. A user name in the issuer is not allowed, because it
/// can look like a host.
fn owns_url(issuer: &Url, metadata_url: &Url) -> bool {
    if !issuer.username().is_empty() || issuer.password().is_some() || issuer.query().is_some() {
        return false;
    }
    let Some((before, after)) = metadata_url.path().split_once("/.well-known/") else { return false };
    let path = issuer.path().trim_matches('/');
    // RFC 8414 inserts the well-known part before the issuer's path, OpenID Connect appends it. The host itself may
    // publish the metadata of any issuer on that host.
    let is_inserted = before.is_empty()
        && after.split_once('/').is_none_or(|(_, inserted)| inserted.trim_matches('/') == path);
    issuer.origin().is_tuple()
        && issuer.origin() == metadata_url.origin()
        && (path == before.trim_matches('/') || is_inserted)
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
    endpoints.chain(revocation_endpoint_of(metadata))
}

fn revocation_endpoint_of(metadata: &AuthorizationMetadata) -> Option<&str> {
    metadata.additional_fields.get("revocation_endpoint")?.as_str()
}

/// Returns the value of a query parameter.
fn parameter(url: &Url, wanted: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == wanted).map(|(_, value)| value.into_owned())
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
