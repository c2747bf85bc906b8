//! Login errors, with advice. Text from a server is truncated, and its control characters are made visible.

use super::LoginServer;
use ironcurtain_visible as visible;
use rmcp::transport::AuthError;
use std::borrow::Cow;
use std::error::Error;
use std::io;
use url::{Position, Url};

/// Maximum length of quoted server text, in characters.
const MAX_MESSAGE_LEN: usize = 300;

/// Name of the step that renews a login, for error messages.
pub(super) const RENEWING: &str = "renewing the login";

/// Error returned when a login fails or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server does not announce an authorization server.
    #[error(
        "`{url}` does not announce a login server; if you have a token, run: ironcurtain servers add {typed} --token",
        typed = shell_quote(.url)
    )]
    NotOffered {
        /// URL of the server.
        url: String,
    },
    /// The authorization server does not support client registration, and no client id was given.
    #[error(
        "`{issuer}` does not let programs register themselves; register an application there with the redirect address \
         `http://127.0.0.1/callback`, then run: ironcurtain servers login {server} --client-id ID   (add --client-secret if it gives you \
         a secret, and --redirect if it needs a fixed port; if the server also takes tokens, you can run: ironcurtain servers add {url} --token)",
        server = shell_quote(.server), url = shell_quote(.url)
    )]
    NeedsClient {
        /// Issuer of the authorization server.
        issuer: String,
        /// Name of the server.
        server: String,
        /// URL of the server.
        url: String,
    },
    /// The stored client id was registered with a different authorization server.
    #[error(
        "the authorization server of `{server}` changed from `{before}` to `{now}`, so your client id was not sent to it; if you trust \
         the change, run: ironcurtain servers logout {typed}", typed = shell_quote(.server)
    )]
    OtherIssuer {
        /// Name of the server.
        server: String,
        /// Authorization server for which the client id was registered.
        before: String,
        /// Authorization server that the server now announces.
        now: String,
    },
    /// A response came from an unexpected issuer.
    #[error("the login was refused: expected a response from `{expected}`, received one from `{received}`")]
    Issuer {
        /// Issuer that the request was sent to.
        expected: String,
        /// Issuer that the response names.
        received: String,
    },
    /// The authorization server does not announce support for PKCE with `S256`.
    #[error(
        "`{issuer}` does not announce PKCE with `S256`, so an intercepted answer could be used; if you have a token, run: ironcurtain \
         servers add {url} --token", url = shell_quote(.url)
    )]
    NoPkce {
        /// Issuer of the authorization server.
        issuer: String,
        /// URL of the server.
        url: String,
    },
    /// The server names more scopes than can be shown.
    #[error(
        "`{server}` requests more scopes than can be shown; choose some: ironcurtain servers login {typed} --scope SCOPES",
        typed = shell_quote(.server)
    )]
    TooManyScopes {
        /// Name of the server.
        server: String,
    },
    /// The redirect address is not supported.
    #[error(
        "`{0}` cannot be used as the redirect address; expected `http://127.0.0.1:PORT/PATH` or `http://localhost:PORT/PATH`, with a port of 1024 or more"
    )]
    Redirect(String),
    /// The server's entry was changed or removed while the user was logging in.
    #[error("the entry of `{0}` changed during the login, so the token was discarded")]
    Changed(String),
    /// The token has scopes that the user did not approve.
    #[error(
        "the authorization server granted more than was requested (`{extra}`), so its token was discarded{advice}",
        advice = .command.as_ref().map(|command| format!("; to request this too, run: {command}")).unwrap_or_default()
    )]
    Scope {
        /// Scopes that were not requested.
        extra: String,
        /// Command that also requests these scopes, or `None` if [`login_command`] returns `None`.
        command: Option<String>,
    },
    /// The user or the authorization server refused the login.
    #[error("the authorization server refused the login: `{0}`")]
    Refused(String),
    /// A step of the login failed.
    #[error("{step} failed: {reason}")]
    Step {
        /// Name of the step.
        step: &'static str,
        /// Reason the step failed.
        reason: String,
    },
    /// The browser did not open the redirect URI in time.
    #[error("the login was not completed within {0} minutes")]
    TimedOut(u64),
    /// The login has expired and cannot be renewed.
    #[error("the login at `{server}` has expired; to log in again, run: ironcurtain servers login {typed}", typed = shell_quote(.server))]
    Expired {
        /// Name of the server.
        server: String,
    },
    /// The stored login cannot be read or written.
    #[error("the login at `{server}` is not available: {reason}")]
    Store {
        /// Name of the server.
        server: String,
        /// Reason the login is not available.
        reason: String,
    },
    /// Listening for the browser's redirect failed.
    #[error(
        "failed to listen on {} of this computer for the browser's redirect: {source}",
        match .port { 0 => "a port".to_owned(), port => format!("port {port}") }
    )]
    Listen {
        /// Port number, or 0 for any port.
        port: u16,
        /// Operating system error.
        source: io::Error,
    },
}

impl LoginError {
    /// Converts an error from rmcp. Removes the secrets in `sent`, because a server may echo them in its response.
    pub(super) fn from_auth_error(
        step: &'static str,
        problem: &AuthError,
        server: &LoginServer,
        sent: &[&str],
    ) -> Self {
        if let AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } = problem {
            return Self::Issuer { expected: sanitize(expected_issuer), received: sanitize(received_issuer) };
        }
        if let AuthError::AuthorizationServerMissingIssuer { expected_issuer } = problem {
            return Self::Issuer { expected: sanitize(expected_issuer), received: "nobody".to_owned() };
        }
        let mut reason = problem.to_string();
        let mut source = problem.source();
        while let Some(inner) = source {
            reason = format!("{reason}: {inner}");
            source = inner.source();
        }
        for sent in sent.iter().filter(|sent| !sent.is_empty()) {
            reason = reason.replace(sent, "[secret]");
        }
        // Some servers expect an API key in the URL's query.
        if let Some(query) = server.url.query().filter(|query| !query.is_empty()) {
            reason = reason.replace(&format!("?{query}"), "");
        }
        Self::Step { step, reason: sanitize(&reason) }
    }

    /// Returns an error with the same message for another request that waited for the same renewal.
    pub(super) fn repeated(&self) -> Self {
        if let Self::Expired { server } = self {
            return Self::Expired { server: server.clone() };
        }
        if let Self::Step { step, reason } = self {
            return Self::Step { step, reason: reason.clone() };
        }
        Self::Step { step: RENEWING, reason: self.to_string() }
    }

    /// Adds the advice to use a token if the error is [`Self::Step`].
    pub(super) fn with_token_advice(mut self, server: &LoginServer) -> Self {
        if let Self::Step { reason, .. } = &mut self {
            let url = without_query(&server.url);
            let url = shell_quote(&url);
            reason.push_str(&format!("; if you have a token, run: ironcurtain servers add {url} --token"));
        }
        self
    }
}

/// Returns the command that logs in with these scopes. Returns `None` if the scopes are too long, or contain a
/// character that a shell could interpret.
#[must_use]
pub fn login_command<'a>(server: &str, scopes: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || ":/._~+*-".contains(c);
    let scopes: Vec<&str> = scopes.into_iter().collect();
    let all = scopes.join(" ");
    let fits = all.len() <= MAX_MESSAGE_LEN && scopes.iter().all(|scope| scope.chars().all(is_safe));
    fits.then(|| format!("ironcurtain servers login {} --scope \"{all}\"", shell_quote(server)))
}

/// Quotes a command-line argument if a shell could interpret it.
#[must_use]
pub fn shell_quote(argument: &str) -> Cow<'_, str> {
    // Quoting fails only for NUL, which an argument cannot contain.
    shlex::try_quote(argument).unwrap_or(Cow::Borrowed("NAME"))
}

/// Returns a URL without its query and fragment.
pub(super) fn without_query(url: &Url) -> String {
    url[..Position::AfterPath].to_owned()
}

/// Returns server text for use in a message: on one line, truncated, and without control characters.
pub(super) fn sanitize(text: &str) -> String {
    visible::head(&visible::line(text), MAX_MESSAGE_LEN)
}
