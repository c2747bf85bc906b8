//! HTTP client for logins. Connects through IronCurtain's dialer.
//!
//! - Requires `https`, except for the server itself and for addresses that the server's entry allows.
//! - Connects to a non-public address only if it is the server's own address or the server's entry allows it.
//! - Does not follow redirects.

use super::LoginServer;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use ironcurtain_egress::address::{AddressScope, is_local_address, scope};
use ironcurtain_egress::{ConnectionRefusal, Dialed, Host, HostPort, HostRules};
use ironcurtain_tls::{TlsClient, TlsError, secure};
use rmcp::transport::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde::Deserialize;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use url::{Position, Url, form_urlencoded};

/// Timeout for one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Maximum number of requests per login. A login with one authorization server needs about ten.
const MAX_REQUESTS: u32 = 40;

/// Error returned when a login's HTTP request fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginRequestError {
    #[error("`{0}` is not an address for a login; it must start with `https://`")]
    Insecure(String),
    #[error(
        "`{host}` is not a public address, so nothing was sent to it; if this is intended, add the address to `allowedAddresses` in the server's entry"
    )]
    PrivateAddress { host: String },
    #[error(transparent)]
    Refused(#[from] ConnectionRefusal),
    #[error("failed to verify the certificate of `{host}`: {source}; nothing was sent")]
    Certificate { host: String, source: io::Error },
    #[error("the connection to `{host}` failed: {source}")]
    Interrupted { host: String, source: hyper::Error },
    #[error("`{host}` did not answer within {n} s", n = TIMEOUT.as_secs())]
    TimedOut { host: String },
    #[error("the response from `{host}` is incomplete or larger than {n} KiB", n = MAX_BYTES >> 10)]
    Body { host: String },
    #[error("the login needs more than {MAX_REQUESTS} requests")]
    TooMany,
    #[error(transparent)]
    Setup(#[from] TlsError),
}

/// HTTP client that rmcp uses for the login.
pub(super) struct LoginHttpClient {
    server: LoginServer,
    requests: AtomicU32,
    /// URL of the first GET request in the current chain of redirects, or `None` outside a chain.
    redirected: Mutex<Option<Url>>,
    metadata_url: Mutex<Option<Url>>,
    error: Mutex<Option<String>>,
    /// Value of the parameter `resource` in each POST request, or `None` to send what rmcp sends.
    resource: Option<String>,
}

impl OAuthHttpClient for LoginHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let sent = Url::parse(&request.request.uri().to_string()).ok();
            let is_get = request.request.method() == Method::GET;
            let mut request = request.request;
            if let Some(resource) = &self.resource {
                set_resource(&mut request, resource);
            }
            let response = self.fetch(request).await?;
            if !is_get {
                *lock(&self.error) = error_code(&response);
                return Ok(response);
            }
            let first = lock(&self.redirected).take().or(sent);
            if response.status().is_redirection() && response.headers().contains_key(header::LOCATION) {
                *lock(&self.redirected) = first;
            } else if response.status() == StatusCode::OK {
                *lock(&self.metadata_url) = first;
            }
            Ok(response)
        })
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the OAuth error code in a response from the token endpoint (RFC 6749, section 5.2).
fn error_code(response: &Response<Vec<u8>>) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    if !response.status().is_client_error() {
        return None;
    }
    Some(serde_json::from_slice::<Refusal>(response.body()).ok()?.error)
}

/// Replaces the parameter `resource` of a POST request. An authorization server may compare its text, and rmcp changes the
/// text of a URL when it parses it: `https://example.com` becomes `https://example.com/`.
fn set_resource(request: &mut Request<Vec<u8>>, resource: &str) {
    if request.method() != Method::POST {
        return;
    }
    let fields: Vec<(String, String)> = form_urlencoded::parse(request.body()).into_owned().collect();
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &fields {
        form.append_pair(name, if name == "resource" { resource } else { value });
    }
    *request.body_mut() = form.finish().into_bytes();
    request.headers_mut().remove(header::CONTENT_LENGTH);
}

impl LoginHttpClient {
    pub(super) fn new(server: LoginServer) -> Self {
        Self {
            server,
            requests: AtomicU32::new(0),
            redirected: Mutex::default(),
            metadata_url: Mutex::default(),
            error: Mutex::default(),
            resource: None,
        }
    }

    /// Sends this resource indicator (RFC 8707) exactly as it is.
    pub(super) fn with_resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Returns the URL of the last GET request that returned status 200, before any redirect.
    pub(super) fn metadata_url(&self) -> Option<Url> {
        lock(&self.metadata_url).clone()
    }

    /// Returns the OAuth error code in the response to the last POST request, if any.
    pub(super) fn error(&self) -> Option<String> {
        lock(&self.error).clone()
    }

    pub(super) async fn fetch(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, LoginRequestError> {
        let url = request.uri().to_string();
        let insecure =
            || LoginRequestError::Insecure(url.split(['?', '#']).next().unwrap_or_default().to_owned());
        let parsed = Url::parse(&url).map_err(|_| insecure())?;
        let target = self.server.check_url(&parsed)?;
        if self.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            return Err(LoginRequestError::TooMany);
        }
        let host = target.to_string();
        let fetched = self.send(&parsed, &target, request);
        tokio::time::timeout(TIMEOUT, fetched).await.unwrap_or(Err(LoginRequestError::TimedOut { host }))
    }

    async fn send(
        &self,
        url: &Url,
        target: &HostPort,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, LoginRequestError> {
        let host = || target.to_string();
        let dialer = (self.server.dial)(self.server.rules(target)?);
        let Dialed { stream, mut permit } = dialer.open(target).await?;
        let tls = match url.scheme() {
            "http" => None,
            _ => Some(TlsClient::new(url.host_str().unwrap_or_default()).await?),
        };
        let stream = secure(Box::new(stream), tls.as_ref()).await;
        let stream = stream.map_err(|source| LoginRequestError::Certificate { host: host(), source })?;
        let interrupted = |source| LoginRequestError::Interrupted { host: host(), source };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(interrupted)?;
        let connection = tokio::spawn(async move {
            tokio::select! {
                _ = connection => {}
                _ = permit.revoked() => {}
            }
        });
        let (mut head, body) = request.into_parts();
        head.uri = url[Position::BeforePath..Position::AfterQuery].parse::<Uri>().unwrap_or_default();
        let authority = &url[Position::BeforeHost..Position::AfterPort];
        if let Ok(authority) = HeaderValue::from_str(authority) {
            head.headers.insert(header::HOST, authority);
        }
        let request = Request::from_parts(head, Full::new(Bytes::from(body)));
        let (head, body) = sender.send_request(request).await.map_err(interrupted)?.into_parts();
        // Do not read an event stream: it does not end, and metadata is never sent as one.
        let kind =
            head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let body = if kind.starts_with("text/event-stream") {
            Vec::new()
        } else {
            let body = Limited::new(body, MAX_BYTES).collect().await;
            body.map_err(|_| LoginRequestError::Body { host: host() })?.to_bytes().to_vec()
        };
        connection.abort();
        Ok(Response::from_parts(head, body))
    }
}

impl LoginServer {
    /// Checks that the login may contact this URL, and returns its host and port.
    pub(super) fn check_url(&self, url: &Url) -> Result<HostPort, LoginRequestError> {
        let insecure = || LoginRequestError::Insecure(url[..Position::AfterPath].to_owned());
        let (host, port) = url.host_str().zip(url.port_or_known_default()).ok_or_else(insecure)?;
        let target = HostPort { host: Host::parse(host).map_err(|_| insecure())?, port };
        let is_plain = match url.scheme() {
            "https" => false,
            "http" => true,
            _ => return Err(insecure()),
        };
        let has_login = !url.username().is_empty() || url.password().is_some();
        if has_login || is_plain && !self.allows_http(&target) {
            return Err(self.private_address(&target).unwrap_or_else(insecure));
        }
        match self.private_address(&target) {
            Some(refused) => Err(refused),
            None => Ok(target),
        }
    }

    /// Returns an error if the host is `localhost` or a non-public address and the login is not allowed to contact it.
    fn private_address(&self, target: &HostPort) -> Option<LoginRequestError> {
        let refused = LoginRequestError::PrivateAddress { host: target.to_string() };
        let is_refused = *target != self.target
            && !self.is_allowed_address(&target.host)
            && match &target.host {
                Host::Address(address) => scope(*address).is_some() || is_local_address(*address),
                Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            };
        is_refused.then_some(refused)
    }

    /// Returns rules for one host. A name may resolve to a public address or to an address that the server's entry
    /// allows.
    fn rules(&self, target: &HostPort) -> Result<HostRules, LoginRequestError> {
        let listed = self.allowed_addresses.iter();
        let listed = listed.filter(|address| scope(**address) != Some(AddressScope::Metadata));
        let listed =
            listed.map(|address| HostPort { host: Host::Address(*address), port: target.port }.to_string());
        let hosts = std::iter::once(target.to_string()).chain(listed);
        HostRules::new(hosts, None::<&str>, false)
            .map_err(|_| LoginRequestError::Insecure(target.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn server(url: &str, allowed: &[&str]) -> LoginServer {
        let url = Url::parse(url).unwrap();
        let host = Host::parse(url.host_str().unwrap()).unwrap();
        LoginServer {
            name: "far".into(),
            target: HostPort { host, port: url.port_or_known_default().unwrap() },
            url,
            allowed_addresses: allowed.iter().map(|address| address.parse().unwrap()).collect(),
            dial: Arc::new(|_| unreachable!()),
        }
    }

    fn refused(server: &LoginServer, url: &str) -> String {
        server.check_url(&Url::parse(url).unwrap()).map_or_else(|e| e.to_string(), |_| String::new())
    }

    #[test]
    fn a_login_contacts_public_hosts_over_https_and_listed_addresses() {
        let public = server("https://mcp.example.com/mcp", &[]);
        for taken in
            ["https://auth.example.com/token", "https://8.8.8.8/token", "https://mcp.example.com:8443/"]
        {
            assert_eq!(refused(&public, taken), "", "{taken}");
        }
        for private in [
            "https://127.0.0.1/token",
            "http://127.0.0.1:6379/",
            "https://10.0.0.1/token",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/token",
            "https://[::ffff:127.0.0.1]/token",
            "http://localhost:8080/token",
            "https://a.localhost/token",
        ] {
            assert!(refused(&public, private).contains("is not a public address"), "{private}");
        }
        for plain in
            ["http://auth.example.com/token", "ftp://auth.example.com/", "https://me:pw@auth.example.com/"]
        {
            assert!(refused(&public, plain).contains("must start with `https://`"), "{plain}");
        }
        let local = server("http://127.0.0.1:3001/mcp", &[]);
        assert_eq!(refused(&local, "http://127.0.0.1:3001/.well-known/x"), "");
        assert!(refused(&local, "http://127.0.0.1:3002/token").contains("is not a public address"));
        let listed = server("http://127.0.0.1:3001/mcp", &["127.0.0.1"]);
        assert_eq!(refused(&listed, "http://127.0.0.1:3002/token"), "");
        assert_eq!(refused(&listed, "http://localhost:3002/token"), "");
        assert!(refused(&listed, "http://127.0.0.2:3002/token").contains("is not a public address"));
    }

    #[test]
    fn a_name_never_covers_an_address_that_is_not_listed() {
        let target = HostPort::parse("auth.example.com:443", None).unwrap();
        let covers = |allowed: &[&str], address: &str| {
            let rules = server("https://mcp.example.com/mcp", allowed).rules(&target).unwrap();
            rules.lists_address(&target, address.parse().unwrap())
        };
        assert!(!covers(&[], "127.0.0.1") && !covers(&["10.1.2.3"], "10.1.2.4"));
        assert!(covers(&["10.1.2.3"], "10.1.2.3"));
        assert!(!covers(&["169.254.169.254"], "169.254.169.254"));
    }
}
