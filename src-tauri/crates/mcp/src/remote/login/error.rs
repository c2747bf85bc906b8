//! Reasons that a login fails, with advice. Text of a server is shortened and made visible.

use super::LoginServer;
use ironcurtain_visible as visible;
use rmcp::transport::AuthError;
use std::borrow::Cow;
use std::error::Error;
use std::io;
use url::{Position, Url};

/// Maximum number of characters to repeat of a server's text.
const LONGEST_SAID: usize = 300;

/// Reason that a login failed, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server announces no login.
    #[error(
        "`{url}` does not say where to log in; if you have a token, run: ironcurtain servers add {typed} --token",
        typed = typed(.url)
    )]
    NotOffered {
        /// Address of the server.
        url: String,
    },
    /// The authorization server registers no clients, and none was given.
    #[error(
        "`{issuer}` does not let programs register themselves; register an application there with the redirect address \
         `http://127.0.0.1/callback`, then run: ironcurtain servers login {server} --client-id ID   (add --client-secret if it gives you \
         a secret; if the server also takes tokens, you can run: ironcurtain servers add {url} --token)",
        server = typed(.server), url = typed(.url)
    )]
    NeedsClient {
        /// Authorization server.
        issuer: String,
        /// Name of the server.
        server: String,
        /// Address of the server.
        url: String,
    },
    /// A stored client was registered at another authorization server.
    #[error(
        "the authorization server of `{server}` changed from `{before}` to `{now}`, so your client id was not sent to it; if you trust \
         the change, run: ironcurtain servers logout {typed}", typed = typed(.server)
    )]
    OtherIssuer {
        /// Name of the server.
        server: String,
        /// Authorization server for which the client was given.
        before: String,
        /// Authorization server that the server announces now.
        now: String,
    },
    /// A response names another issuer than the one that was asked.
    #[error("the login was refused: expected an answer of `{expected}`, received one of `{received}`")]
    Issuer {
        /// Issuer that was asked.
        expected: String,
        /// Issuer that answered.
        received: String,
    },
    /// The authorization server does not say that it checks the code's verifier (PKCE).
    #[error(
        "`{issuer}` does not announce PKCE with `S256`, so an intercepted answer could be used; if you have a token, run: ironcurtain \
         servers add {url} --token", url = typed(.url)
    )]
    NoPkce {
        /// Authorization server.
        issuer: String,
        /// Address of the server.
        url: String,
    },
    /// The token allows more than what the user approved.
    #[error(
        "the authorization server granted more than was requested (`{extra}`), so its token was discarded{advice}",
        advice = .command.as_ref().map(|command| format!("; to request this too, run: {command}")).unwrap_or_default()
    )]
    Scope {
        /// Scopes that were not requested.
        extra: String,
        /// Command that requests them too; `None` if they are not safe to type.
        command: Option<String>,
    },
    /// The user or the authorization server refused.
    #[error("the authorization server refused the login: `{0}`")]
    Refused(String),
    /// A step failed.
    #[error("{step} failed: {reason}")]
    Step {
        /// Step of the login.
        step: &'static str,
        /// Reason.
        reason: String,
    },
    /// The browser did not come back.
    #[error("the login was not completed within {0} minutes")]
    TimedOut(u64),
    /// The login has expired and cannot be renewed.
    #[error("the login at `{server}` has expired; to log in again, run: ironcurtain servers login {typed}", typed = typed(.server))]
    Expired {
        /// Name of the server.
        server: String,
    },
    /// The stored login cannot be read or written.
    #[error("the login at `{server}` is not available: {reason}")]
    Store {
        /// Name of the server.
        server: String,
        /// Reason.
        reason: String,
    },
    /// The listener failed.
    #[error("failed to wait for the browser: {0}")]
    Listen(#[from] io::Error),
}

impl LoginError {
    /// Converts an error of rmcp in one step of the login. The other side may repeat the secrets that it was sent.
    pub(super) fn of(step: &'static str, problem: &AuthError, server: &LoginServer, sent: &[&str]) -> Self {
        if let AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } = problem {
            return Self::Issuer { expected: said(expected_issuer), received: said(received_issuer) };
        }
        if let AuthError::AuthorizationServerMissingIssuer { expected_issuer } = problem {
            return Self::Issuer { expected: said(expected_issuer), received: "nobody".to_owned() };
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
        // Some providers put API keys into the query.
        if let Some(query) = server.url.query().filter(|query| !query.is_empty()) {
            reason = reason.replace(&format!("?{query}"), "");
        }
        Self::Step { step, reason: said(&reason) }
    }

    /// Adds the advice to use a token, if a step failed.
    pub(super) fn or_a_token(mut self, server: &LoginServer) -> Self {
        if let Self::Step { reason, .. } = &mut self {
            let url = shown(&server.url);
            let url = typed(&url);
            reason.push_str(&format!("; if you have a token, run: ironcurtain servers add {url} --token"));
        }
        self
    }
}

/// Returns the command that logs in with these scopes; `None` if a scope has a character that a shell may interpret.
#[must_use]
pub fn login_command<'a>(server: &str, scopes: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || ":/._~+*-".contains(c);
    let scopes: Vec<&str> = scopes.into_iter().collect();
    let all = scopes.join(" ");
    let fits = all.len() <= LONGEST_SAID && scopes.iter().all(|scope| scope.chars().all(is_safe));
    fits.then(|| format!("ironcurtain servers login {} --scope \"{all}\"", typed(server)))
}

/// Returns a name or an address as an argument of a command, quoted if a shell could interpret it.
#[must_use]
pub fn typed(argument: &str) -> Cow<'_, str> {
    // Fails for NUL, which no argument can contain.
    shlex::try_quote(argument).unwrap_or(Cow::Borrowed("NAME"))
}

/// Returns an address without its query.
pub(super) fn shown(url: &Url) -> String {
    url[..Position::AfterPath].to_owned()
}

/// Returns a text of a server for a sentence.
pub(super) fn said(text: &str) -> String {
    visible::head(&visible::line(text), LONGEST_SAID)
}
