//! Configuration of one proxy.

use crate::ask::AskHost;
use crate::connections::Connections;
use crate::record::Record;
use crate::resolve::Resolve;
use crate::rules::HostRules;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One proxy: the server it serves, its rules, and the services it uses.
pub struct Proxy {
    /// Name of the server behind it, for the record.
    pub server: String,
    /// Reachable hosts. They may change at any time; connections that are no longer allowed are cut. Dropping the sender
    /// revokes every permission.
    pub rules: watch::Receiver<Arc<HostRules>>,
    /// Asks about targets that no rule matches; with `None` those are refused.
    pub ask: Option<Arc<dyn AskHost>>,
    /// Record of decisions.
    pub record: Arc<dyn Record>,
    /// Name resolver.
    pub resolve: Arc<dyn Resolve>,
    /// Set of open connections.
    pub connections: Connections,
    /// Size and time limits.
    pub limits: ProxyLimits,
}

/// Size and time limits of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Maximum number of open connections; more wait in the kernel's queue.
    pub connections: usize,
    /// Maximum size of a request head, in bytes.
    pub head: usize,
    /// Timeout for each message that the client must send: first byte, head, SOCKS greeting, ClientHello.
    pub handshake: Duration,
    /// Timeout for one name lookup.
    pub resolve: Duration,
    /// Timeout for each dialled address.
    pub dial: Duration,
    /// Timeout for an answer; longer than the timeout of the prompt itself.
    pub answer: Duration,
    /// Timeout for an idle connection.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: 64 * 1024,
            handshake: Duration::from_secs(20),
            resolve: Duration::from_secs(15),
            dial: Duration::from_secs(15),
            answer: Duration::from_secs(40 * 60),
            idle: Duration::from_secs(60 * 60),
        }
    }
}
