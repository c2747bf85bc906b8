//! Login at a remote server, as the MCP authorization specification describes it (OAuth 2.1). The protocol is rmcp's.
//!
//! - Every request (metadata, registration, tokens) goes through our dialer, under rules for exactly its host.
//! - INVARIANT: no error and no log line contains a token, an authorization code or a client secret. rmcp's log is off.
//! - A login belongs to the address of one server. Its token endpoint is the one that the user approved: it is stored, and not
//!   discovered again.
//! - Decides nothing for the user: the caller shows an [`LoginOffer`] and asks before it calls [`LoginOffer::begin`].

mod access;
mod callback;
mod error;
mod http_client;
mod offer;
mod peer;
mod refresh;
mod revocation;
mod stored;

pub use access::{LoginStore, ServerLogin};
pub use callback::{Callback, CallbackListener};
pub use error::{LoginError, login_command, typed};
pub use offer::{BegunLogin, ClientChoice, LoginOffer};
pub use stored::StoredLogin;

use ironcurtain_egress::{Dialer, Host, HostPort, HostRules};
use std::net::IpAddr;
use std::sync::Arc;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;
use url::Url;

/// Creates a dialer with these rules.
pub type Dial = Arc<dyn Fn(HostRules) -> Dialer + Send + Sync>;

/// Server to log in to, and the hosts that the login may contact.
#[derive(Clone)]
pub struct LoginServer {
    /// Name in the configuration.
    pub name: String,
    /// Its address.
    pub url: Url,
    /// Host and port of its address.
    pub target: HostPort,
    /// Addresses that are not public and that its entry allows.
    pub allowed_addresses: Vec<IpAddr>,
    /// Creates dialers.
    pub dial: Dial,
}

impl LoginServer {
    /// Returns whether a URL may be contacted without encryption, because it is on this machine or in its network.
    fn may_be_plain(&self, target: &HostPort) -> bool {
        *target == self.target && self.url.scheme() == "http" || self.is_listed(&target.host)
    }

    fn is_listed(&self, host: &Host) -> bool {
        match host {
            Host::Address(address) => self.allowed_addresses.contains(&address.to_canonical()),
            Host::Name(name) => {
                name == "localhost" && self.allowed_addresses.iter().any(|address| address.is_loopback())
            }
        }
    }
}

/// Runs a step of rmcp without its log, which contains codes and server responses.
async fn unlogged<T>(step: impl Future<Output = T>) -> T {
    step.with_subscriber(NoSubscriber::default()).await
}

#[cfg(test)]
mod tests;
