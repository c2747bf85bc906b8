//! Reasons that a request to a remote server failed, with actionable messages for users and agents.

use crate::wire::MAX_LINE_BYTES;
use ironcurtain_egress::ConnectionRefusal;
use ironcurtain_egress::address::AddressScope;

/// Reason that a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// No connection.
    #[error("{0}{hint}", hint = hint(.0))]
    NoConnection(#[from] ConnectionRefusal),
    /// The certificate is not valid for the host.
    #[error("`{host}` failed to prove its identity, so nothing was sent to it: {problem}")]
    InvalidCertificate {
        /// Host name.
        host: String,
        /// Certificate error.
        problem: String,
    },
    /// The connection was interrupted.
    #[error(
        "the connection to `{host}` was lost before the response ({problem}); the server may have received the request, so it was not sent again"
    )]
    Interrupted {
        /// Host name.
        host: String,
        /// Underlying error.
        problem: String,
    },
    /// The response ended early.
    #[error(
        "the server's response ended before it was complete; the request may have been carried out, so it was not sent again"
    )]
    Truncated,
    /// Refused login.
    #[error("{0}")]
    Unauthorized(String),
    /// The server is overloaded or unavailable.
    #[error("the server is overloaded or unavailable ({status}){after}", after = after(.retry_after))]
    Busy {
        /// HTTP status.
        status: u16,
        /// `Retry-After` header.
        retry_after: Option<String>,
    },
    /// A redirect.
    #[error(
        "the server has moved ({status}) to `{to}`, and redirects are not followed; if you trust that address, set it as `url` in the server's entry"
    )]
    Moved {
        /// HTTP status.
        status: u16,
        /// `Location` header.
        to: String,
    },
    /// HTTP 404.
    #[error("no MCP server at this address (404); check the `url` in its entry")]
    NotFound,
    /// HTTP 404 within a session.
    #[error(
        "the server has forgotten the session (404); the next call starts a new one, so repeat this call if it was not carried out"
    )]
    Forgotten,
    /// Any other HTTP error.
    #[error("the server refused the request ({status}){said}")]
    Status {
        /// HTTP status.
        status: u16,
        /// The server's explanation, prefixed with a colon.
        said: String,
    },
    /// An HTML page.
    #[error("received a web page instead of an MCP response; check the `url` in the server's entry")]
    WebPage,
    /// Unsupported content type.
    #[error("the server answered with `{0}` instead of an MCP content type")]
    Form(String),
    /// The message exceeds the size limit.
    #[error("the server's answer is larger than {n} MB; IronCurtain takes at most {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// No memory was available.
    #[error(
        "not enough memory for a long message, because other sessions use it; try again, or increase `memoryMib` in `config.json`"
    )]
    NoRoom,
    /// Too many requests in flight.
    #[error("{0} requests to the server are already pending; try again when it has answered")]
    TooMany(usize),
    /// The reader was dropped.
    #[error("the connection was closed")]
    Over,
}

impl Fault {
    /// Adds the server's explanation, if there is one.
    pub(super) fn with_explanation(self, words: &str) -> Self {
        let words = words.trim();
        if let (Self::Status { status, .. }, false) = (&self, words.is_empty()) {
            return Self::Status { status: *status, said: format!(": `{words}`") };
        }
        self
    }
}

fn hint(refusal: &ConnectionRefusal) -> &'static str {
    if let ConnectionRefusal::NotPublic { place, .. } = refusal
        // Connecting to the metadata address is never intended.
        && *place != AddressScope::Metadata
    {
        return "; if this is intended, add the address to `allowedAddresses` in its entry";
    }
    if let ConnectionRefusal::Unresolvable { .. } = refusal {
        return "; check the `url` in its entry, and your network";
    }
    ""
}

fn after(retry_after: &Option<String>) -> String {
    match retry_after {
        Some(after) if after.bytes().all(|b| b.is_ascii_digit()) => format!("; try again in {after} s"),
        Some(after) => format!("; try again after {after}"),
        None => "; try again later".to_owned(),
    }
}
