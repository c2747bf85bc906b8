//! Configuration of a proxy.

use crate::ask::AskHost;
use crate::connections::Connections;
use crate::record::Record;
use crate::resolve::Resolve;
use crate::rules::HostRules;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One server's proxy: its rules, limits and services.
pub struct Proxy {
    /// Name of the server, for the audit log.
    pub server: String,
    /// Rules for reachable hosts. A change closes connections that are no longer allowed. Dropping the sender revokes
    /// every permission.
    pub rules: watch::Receiver<Arc<HostRules>>,
    /// Asks the user about targets that no rule matches. If `None`, such targets are refused.
    pub ask: Option<Arc<dyn AskHost>>,
    /// Records each decision before it takes effect.
    pub record: Arc<dyn Record>,
    /// Resolver for the host names in targets.
    pub resolve: Arc<dyn Resolve>,
    /// Set of this proxy's open connections.
    pub connections: Connections,
    /// Limits on sizes, durations and the number of connections.
    pub limits: ProxyLimits,
}

/// A proxy's limits on sizes, durations and the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Maximum number of open connections. Further connections wait in the kernel's backlog.
    pub connections: usize,
    /// Maximum length of an HTTP request head in bytes.
    pub head: usize,
    /// Timeout for each message of the client's handshake: the first byte, the HTTP head, SOCKS messages and the
    /// ClientHello.
    pub handshake: Duration,
    /// Timeout for a name lookup.
    pub resolve: Duration,
    /// Timeout for connecting to each address.
    pub dial: Duration,
    /// Timeout for the user's answer. Must exceed the time limit of the question itself.
    pub answer: Duration,
    /// Idle time after which a connection is closed.
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
