//! Reasons a request to a remote server fails, with messages that tell users and agents what to do.

use super::login::LoginError;
use crate::wire::MAX_LINE_BYTES;
use ironcurtain_egress::ConnectionRefusal;
use ironcurtain_egress::address::AddressScope;
use std::time::Duration;

/// Reason a request to a remote server failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// No connection could be opened.
    #[error("{0}{hint}", hint = hint(.0))]
    NoConnection(#[from] ConnectionRefusal),
    /// The certificate is not valid for the host.
    #[error("failed to verify the certificate of `{host}`: {problem}; nothing was sent")]
    InvalidCertificate {
        /// Host and port of the server.
        host: String,
        /// Reason the certificate is not accepted.
        problem: String,
    },
    /// The connection was lost before the response.
    #[error(
        "the connection to `{host}` was lost before the response ({problem}); the server may have received the request, so it was not sent again"
    )]
    Interrupted {
        /// Host and port of the server.
        host: String,
        /// Connection error.
        problem: String,
    },
    /// The response ended before it was complete.
    #[error(
        "the server's response ended before it was complete; the request may have been carried out, so it was not sent again"
    )]
    Truncated,
    /// The server refused the login.
    #[error("{advice}")]
    Unauthorized {
        /// HTTP status.
        status: u16,
        /// Explanation and advice.
        advice: String,
    },
    /// The login has expired, or cannot be renewed now.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The server is overloaded or unavailable.
    #[error("the server is overloaded or unavailable ({status}){advice}", advice = retry_advice(.retry_after))]
    Busy {
        /// HTTP status, 429 or 503.
        status: u16,
        /// `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The server redirected the request.
    #[error(
        "the server has moved ({status}) to `{to}`, and redirects are not followed; if you trust that address, set it as `url` in the server's entry"
    )]
    Moved {
        /// HTTP status of the redirect.
        status: u16,
        /// `Location` header.
        to: String,
    },
    /// The server has nothing at this URL (HTTP 404).
    #[error("no MCP server at this address (404); check the `url` in its entry")]
    NotFound,
    /// The server does not know the session (HTTP 404, or 400 with a message about the session).
    #[error(
        "the server has forgotten the session; the next call starts a new one, so repeat this call if it was not carried out"
    )]
    SessionLost,
    /// The server returned another HTTP error.
    #[error("the server refused the request ({status}){explanation}")]
    Status {
        /// HTTP status of the response.
        status: u16,
        /// The server's explanation with a leading colon, or an empty string.
        explanation: String,
    },
    /// The server returned an HTML page.
    #[error("received a web page instead of an MCP response; check the `url` in the server's entry")]
    WebPage,
    /// The response has an unsupported content type.
    #[error("the server answered with `{0}` instead of an MCP content type")]
    BodyFormat(String),
    /// The response exceeds the size limit.
    #[error("the server's answer exceeds {n} MB; the limit is {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// No memory was available for the response.
    #[error(
        "not enough memory for a long message, because other sessions are using it; try again, or increase `memoryMib` in `config.json`"
    )]
    NoMemory,
    /// The maximum number of requests is in flight.
    #[error("{0} requests to the server are already pending; try again when the server has answered")]
    TooMany(usize),
    /// The reader of the connection was dropped.
    #[error("the connection was closed")]
    Closed,
}

impl Fault {
    /// Adds the server's explanation, unless it is empty.
    pub(super) fn with_explanation(self, explanation: &str) -> Self {
        let explanation = explanation.trim();
        if let (Self::Status { status, .. }, false) = (&self, explanation.is_empty()) {
            return Self::Status { status: *status, explanation: format!(": `{explanation}`") };
        }
        self
    }
}

impl Fault {
    /// Returns `true` if the user must log in.
    pub(super) fn needs_login(&self) -> bool {
        matches!(self, Self::Unauthorized { status: 401, .. } | Self::Login(LoginError::Expired { .. }))
    }

    /// Returns `true` if the server's explanation says that the session is unknown. Some servers send this explanation
    /// with status 400 instead of 404.
    pub(super) fn is_about_session(&self, explanation: &[u8]) -> bool {
        let text = String::from_utf8_lossy(explanation).to_lowercase();
        matches!(self, Self::Status { status: 400, .. })
            && UNKNOWN_SESSION.iter().any(|words| text.contains(words))
    }

    /// Returns the delay before the request is retried. Returns `None` if the server may have carried out the request,
    /// or if the delay or the number of attempts is too large.
    pub(super) fn retry_delay(&self, attempt: u32) -> Option<Duration> {
        let Self::Busy { status, retry_after } = self else { return None };
        let delay = match retry_after {
            Some(after) => Duration::from_secs(after.parse().ok()?),
            // Without `Retry-After`, a gateway may have lost the response to a request that was carried out.
            None if *status == 503 => return None,
            None => DEFAULT_RETRY_DELAY * 2_u32.pow(attempt.min(MAX_ATTEMPTS)),
        };
        (attempt < MAX_ATTEMPTS && delay <= MAX_RETRY_DELAY).then_some(delay)
    }
}

/// Texts in 400 responses with which the reference server and the SDK examples refuse an unknown session.
const UNKNOWN_SESSION: [&str; 3] = ["no valid session id", "invalid session id", "session not found"];

/// Maximum number of times that a rejected request is retried.
const MAX_ATTEMPTS: u32 = 2;

/// Delay before the first retry if the server specifies none. The delay doubles with each retry.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Maximum delay before a retry. Clients do not wait much longer for a response.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

fn hint(refusal: &ConnectionRefusal) -> &'static str {
    if let ConnectionRefusal::NotPublic { scope, .. } = refusal
        // Connecting to the metadata address is never intended.
        && *scope != AddressScope::Metadata
    {
        return "; if this is intended, add the address to `allowedAddresses` in its entry";
    }
    if let ConnectionRefusal::Unresolvable { .. } = refusal {
        return "; check the `url` in its entry, and your network";
    }
    ""
}

fn retry_advice(retry_after: &Option<String>) -> String {
    match retry_after {
        Some(after) if after.bytes().all(|b| b.is_ascii_digit()) => format!("; try again in {after} s"),
        Some(after) => format!("; try again after {after}"),
        None => "; try again later".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_was_turned_away_is_repeated_as_the_server_says() {
        let busy =
            |status, after: Option<&str>| Fault::Busy { status, retry_after: after.map(str::to_owned) };
        let pauses =
            |fault: Fault| [0, 1, 2].map(|attempt| fault.retry_delay(attempt).map(|pause| pause.as_millis()));
        assert_eq!(pauses(busy(429, None)), [Some(500), Some(1000), None]);
        assert_eq!(pauses(busy(429, Some("2"))), [Some(2000), Some(2000), None]);
        assert_eq!(pauses(busy(503, Some("0"))), [Some(0), Some(0), None]);
        for other in [
            busy(503, None),
            busy(429, Some("30")),
            busy(429, Some("Wed, 21 Oct 2026 07:28:00 GMT")),
            Fault::Truncated,
            Fault::SessionLost,
        ] {
            assert_eq!(other.retry_delay(0), None, "{other}");
        }
    }
}
