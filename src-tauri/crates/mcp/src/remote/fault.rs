//! Why a request to a remote server has no answer, in words for people and agents, that say what to do.

use crate::wire::MAX_LINE_BYTES;
use ironcurtain_egress::ConnectionRefusal;
use ironcurtain_egress::address::AddressScope;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// There is no connection.
    #[error("{0}{hint}", hint = hint(.0))]
    NoConnection(#[from] ConnectionRefusal),
    /// Whoever answers does not prove to be the host.
    #[error("`{host}` does not prove that it is that host, so nothing was sent to it: {problem}")]
    NotTrusted {
        /// The host.
        host: String,
        /// The fault of its certificate.
        problem: String,
    },
    /// The connection broke.
    #[error(
        "the connection to `{host}` broke before the answer ({problem}); the server may have had the request, so it was not sent again"
    )]
    Broke {
        /// The host.
        host: String,
        /// The way it broke.
        problem: String,
    },
    /// The stream of the answer ended.
    #[error(
        "the server ended its answer before it was complete; it may have done what was asked, so that was not sent again"
    )]
    Unanswered,
    /// It refuses who asks.
    #[error("{0}")]
    NotLetIn(String),
    /// It has too much to do.
    #[error("the server has too much to do, or is not there just now ({status}){after}", after = after(.retry_after))]
    Busy {
        /// The status.
        status: u16,
        /// The time that it names.
        retry_after: Option<String>,
    },
    /// It is elsewhere.
    #[error(
        "the server has moved ({status}) to `{to}`, and no redirect is followed; if you trust that address, write it as `url` in its entry"
    )]
    Moved {
        /// The status.
        status: u16,
        /// The address that it names.
        to: String,
    },
    /// Nobody is there.
    #[error("there is no MCP server at this address (404); look at the `url` of its entry")]
    NotThere,
    /// It has forgotten who we are.
    #[error(
        "it has forgotten the session (404), and is session anew with the next call; make this one again if it was not done"
    )]
    Forgotten,
    /// It says no.
    #[error("the server refused the request ({status}){said}")]
    Status {
        /// The status.
        status: u16,
        /// Its words, with what stands before them.
        said: String,
    },
    /// It is a web site.
    #[error("a web page answered and no MCP server; look at the `url` of its entry")]
    WebPage,
    /// It answers in a form that nobody reads.
    #[error("the server answered with `{0}`, which is no form of an MCP answer")]
    Form(String),
    /// Its message is over the bound.
    #[error("the server's answer is larger than {n} MB; IronCurtain takes at most {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// There is no memory.
    #[error(
        "no memory was left for a long message, because of what other sessions hold; try again, or give more with `memoryMib` in `config.json`"
    )]
    NoRoom,
    /// Too many requests wait for it.
    #[error("{0} requests wait for the server already; try again when it has answered")]
    TooMany(usize),
    /// Nobody reads what it says.
    #[error("the conversation is over")]
    Over,
}

impl Fault {
    /// The same with the server's words for it, where it has some.
    pub(super) fn said(self, words: &str) -> Self {
        let words = words.trim();
        if let (Self::Status { status, .. }, false) = (&self, words.is_empty()) {
            return Self::Status { status: *status, said: format!(": `{words}`") };
        }
        self
    }
}

fn hint(refusal: &ConnectionRefusal) -> &'static str {
    if let ConnectionRefusal::NotPublic { place, .. } = refusal
        // Nobody means that one.
        && *place != AddressScope::Metadata
    {
        return "; if that is meant, write the address in `allowedAddresses` of its entry";
    }
    if let ConnectionRefusal::Unresolvable { .. } = refusal {
        return "; look at the `url` of its entry, and at your network";
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
