//! Receives the browser's redirect on a loopback port: a random port, or the port that the user registered.
//!
//! - Only a request with this login's `state` completes the login. Any other request gets an error page.
//! - Connections from other users' processes are rejected.
//! - Accepts one callback, then closes the port. Never redirects, and never echoes request data in a page.

use super::error::{LoginError, sanitize};
use super::peer::is_own_peer;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;
use zeroize::Zeroizing;

/// Timeout for the user to log in, in minutes.
const TIMEOUT_MINUTES: u64 = 5;

/// Timeout for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a request head, in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;

/// Maximum number of connections that are read concurrently.
const MAX_CONNECTIONS: usize = 16;

/// Minimum port of a redirect address. Lower ports belong to the system.
const MIN_PORT: u16 = 1024;

/// Loopback address to which the browser is redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectAddress {
    /// Host and port, as in the `Host` header.
    authority: String,
    port: u16,
    path: String,
}

impl FromStr for RedirectAddress {
    type Err = LoginError;

    fn from_str(text: &str) -> Result<Self, LoginError> {
        let refused = || LoginError::Redirect(sanitize(text));
        let url = Url::parse(text).map_err(|_| refused())?;
        let port = url.port().filter(|port| *port >= MIN_PORT).ok_or_else(refused)?;
        let host =
            url.host_str().filter(|host| ["127.0.0.1", "localhost"].contains(host)).ok_or_else(refused)?;
        let address = Self { authority: format!("{host}:{port}"), port, path: url.path().to_owned() };
        // The authorization server compares the text, so the URL must not contain anything that is not used here.
        if address.to_string() == text { Ok(address) } else { Err(refused()) }
    }
}

impl fmt::Display for RedirectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// Listener for the browser's redirect.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    /// Listener on the IPv6 loopback address, which `localhost` may also mean. `None` if the address is not `localhost` or
    /// there is no IPv6.
    listener_v6: Option<TcpListener>,
    address: RedirectAddress,
}

/// Parameters of a successful redirect.
pub struct Callback {
    pub(super) code: Zeroizing<String>,
    pub(super) state: String,
    pub(super) issuer: Option<String>,
}

/// Omits the code.
impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

enum RedirectOutcome {
    Accepted(Callback),
    Refused(String),
    Other,
}

impl CallbackListener {
    /// Binds the port of this address on the loopback interface, or a random port. For `localhost`, binds the port for IPv4
    /// and IPv6, because otherwise another program could receive the redirect.
    ///
    /// # Errors
    /// Returns [`LoginError::Listen`] if the port cannot be bound.
    pub async fn open(address: Option<RedirectAddress>) -> Result<Self, LoginError> {
        let port = address.as_ref().map_or(0, |address| address.port);
        let failed = |source| LoginError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let is_localhost = |address: &RedirectAddress| address.authority.starts_with("localhost:");
        let listener_v6 = match address.as_ref().is_some_and(is_localhost) {
            true => bind_v6(port).await.map_err(failed)?,
            false => None,
        };
        let address = address.unwrap_or_else(|| RedirectAddress {
            authority: format!("127.0.0.1:{port}"),
            port,
            path: "/callback".to_owned(),
        });
        Ok(Self { listener, listener_v6, address })
    }

    /// Returns the redirect URI.
    #[must_use]
    pub fn redirect(&self) -> String {
        self.address.to_string()
    }

    /// Waits up to five minutes for a redirect with this `state`, then closes the port.
    ///
    /// # Errors
    /// Returns [`LoginError`] if the user or the authorization server refused the login, or if it timed out.
    pub async fn answer(self, state: &str) -> Result<Callback, LoginError> {
        let outcome =
            tokio::time::timeout(Duration::from_secs(60 * TIMEOUT_MINUTES), self.accept_redirect(state))
                .await;
        outcome.unwrap_or(Err(LoginError::TimedOut(TIMEOUT_MINUTES)))
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let accepted = match &self.listener_v6 {
            None => self.listener.accept().await,
            Some(listener_v6) => tokio::select! {
                accepted = self.listener.accept() => accepted,
                accepted = listener_v6.accept() => accepted,
            },
        };
        accepted.map(|(stream, _)| stream)
    }

    async fn accept_redirect(self, state: &str) -> Result<Callback, LoginError> {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let outcome = tokio::select! {
                accepted = self.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let port = self.address.port;
                    let stream = accepted.map_err(|source| LoginError::Listen { port, source })?;
                    let (state, address) = (state.to_owned(), self.address.clone());
                    connections.spawn(async move {
                        let is_own = is_own_peer(&stream);
                        let served = serve(stream, is_own, &state, &address);
                        tokio::time::timeout(REQUEST_TIMEOUT, served).await.unwrap_or(RedirectOutcome::Other)
                    });
                    continue;
                }
                Some(outcome) = connections.join_next() => outcome.unwrap_or(RedirectOutcome::Other),
            };
            match outcome {
                RedirectOutcome::Accepted(callback) => return Ok(callback),
                RedirectOutcome::Refused(why) => return Err(LoginError::Refused(why)),
                RedirectOutcome::Other => {}
            }
        }
    }
}

/// Binds a port on the IPv6 loopback address. Returns `None` if there is no IPv6.
async fn bind_v6(port: u16) -> io::Result<Option<TcpListener>> {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(listener) => Ok(Some(listener)),
        Err(problem) if problem.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => Ok(None),
        Err(problem) if problem.kind() == io::ErrorKind::AddrNotAvailable => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Reads one request and sends the response.
async fn serve(
    mut stream: TcpStream,
    is_own: bool,
    state: &str,
    address: &RedirectAddress,
) -> RedirectOutcome {
    // Do not read requests from other users.
    let outcome = match is_own {
        true => match read_head(&mut stream).await {
            Some(head) => parse_redirect(&head, state, address),
            None => return RedirectOutcome::Other,
        },
        false => RedirectOutcome::Other,
    };
    let (status, text) = match &outcome {
        RedirectOutcome::Accepted(_) => ("200 OK", "Return to IronCurtain. You can close this page."),
        RedirectOutcome::Refused(_) => ("200 OK", "The login was refused. You can close this page."),
        RedirectOutcome::Other => ("400 Bad Request", "This is not the login that IronCurtain started."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>IronCurtain</title><p>{text}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{page}",
        page.len()
    );
    // Ignore errors: the login succeeds even if the browser does not read the page.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    outcome
}

/// Reads a request head. Returns `None` if it is incomplete, too long or not UTF-8.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(chunk.get(..read)?);
        if head.len() > MAX_HEAD_LEN {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

fn parse_redirect(head: &str, state: &str, address: &RedirectAddress) -> RedirectOutcome {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return RedirectOutcome::Other };
    let RedirectAddress { authority: host, path, .. } = address;
    let is_host = |line: &str| {
        line.split_once(':')
            .is_some_and(|(name, value)| name.eq_ignore_ascii_case("host") && value.trim() == *host)
    };
    let Ok(url) = Url::parse(&format!("http://{host}{target}")) else { return RedirectOutcome::Other };
    if !lines.any(is_host) || url.path() != path || !target.starts_with(path.as_str()) {
        return RedirectOutcome::Other;
    }
    let mut values = HashMap::new();
    // A repeated parameter is ambiguous.
    if url.query_pairs().into_owned().any(|(key, value)| values.insert(key, value).is_some()) {
        return RedirectOutcome::Other;
    }
    let value = |key: &str| values.get(key).cloned();
    if state.is_empty() || value("state").as_deref() != Some(state) {
        return RedirectOutcome::Other;
    }
    if let Some(error) = value("error") {
        let why = value("error_description").map_or(error.clone(), |why| format!("{error}: {why}"));
        return RedirectOutcome::Refused(sanitize(&why));
    }
    match value("code").filter(|code| !code.is_empty()) {
        Some(code) => RedirectOutcome::Accepted(Callback {
            code: code.into(),
            state: state.to_owned(),
            issuer: value("iss"),
        }),
        // The implicit flow, which passes a token in the URL, is not supported.
        None => RedirectOutcome::Refused("it sent no code".to_owned()),
    }
}

#[cfg(test)]
mod tests;
