//! Login to a remote server according to the MCP authorization specification (OAuth 2.1). rmcp implements the protocol.
//!
//! - Every request (metadata, registration, tokens) goes through IronCurtain's dialer, with rules that allow only its
//!   host.
//! - INVARIANT: no error or log line contains a token, an authorization code or a client secret. rmcp's logging is
//!   disabled.
//! - A login is bound to one server's URL. The token endpoint that the user approved is stored and never rediscovered.
//! - The caller must show the [`LoginOffer`] and get the user's approval before calling [`LoginOffer::begin`].

mod access;
mod callback;
mod client_choice;
mod error;
mod http_client;
mod offer;
mod peer;
mod refresh;
mod revocation;
mod stored;

pub use access::{LoginStore, ServerLogin};
pub use callback::{Callback, CallbackListener, RedirectAddress};
pub use client_choice::ClientChoice;
pub use error::{LoginError, login_command, shell_quote};
pub use offer::{LoginOffer, StartedLogin};
pub use stored::StoredLogin;

use ironcurtain_egress::{Dialer, Host, HostPort, HostRules};
use std::net::IpAddr;
use std::sync::Arc;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;
use url::Url;

/// Function that creates a dialer with the given rules.
pub type Dial = Arc<dyn Fn(HostRules) -> Dialer + Send + Sync>;

/// Server to log in to, with the non-public addresses that the login may contact.
#[derive(Clone)]
pub struct LoginServer {
    /// Name of the server in the configuration.
    pub name: String,
    /// URL of the server.
    pub url: Url,
    /// Host and port of the server.
    pub target: HostPort,
    /// Non-public addresses that the server's entry allows.
    pub allowed_addresses: Vec<IpAddr>,
    /// Creates the dialer for each request.
    pub dial: Dial,
}

impl LoginServer {
    /// Returns the parameters for a login whose server no longer has an entry. Only the server itself and public
    /// addresses can be contacted. Returns `None` if the URL of the login is invalid.
    #[must_use]
    pub fn without_entry(name: &str, login: &StoredLogin, dial: Dial) -> Option<Self> {
        let url = Url::parse(login.url()).ok()?;
        let target =
            HostPort { host: Host::parse(url.host_str()?).ok()?, port: url.port_or_known_default()? };
        Some(Self { name: name.to_owned(), url, target, allowed_addresses: Vec::new(), dial })
    }

    /// Returns `true` if unencrypted HTTP to this host is allowed: the host is the server itself and its URL uses
    /// `http`, or the host is an address that the server's entry allows.
    fn allows_http(&self, target: &HostPort) -> bool {
        *target == self.target && self.url.scheme() == "http" || self.is_allowed_address(&target.host)
    }

    fn is_allowed_address(&self, host: &Host) -> bool {
        match host {
            Host::Address(address) => self.allowed_addresses.contains(&address.to_canonical()),
            Host::Name(name) => {
                name == "localhost" && self.allowed_addresses.iter().any(|address| address.is_loopback())
            }
        }
    }
}

/// Runs a future with logging disabled, because rmcp logs authorization codes and server responses.
async fn without_logging<T>(step: impl Future<Output = T>) -> T {
    step.with_subscriber(NoSubscriber::default()).await
}

#[cfg(test)]
mod tests;
