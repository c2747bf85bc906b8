//! The parts that one proxy is made of, and its bounds.

use crate::ask::AskHost;
use crate::connections::Connections;
use crate::record::Record;
use crate::resolve::Resolve;
use crate::rules::HostRules;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One proxy: whom it serves, what it may do, and whom it asks and tells.
pub struct Proxy {
    /// The server behind it, for the record.
    pub server: String,
    /// The hosts that may be reached. They may change at any time: connections that it no longer allows are cut. When its sender is
    /// gone, so is every permission.
    pub rules: watch::Receiver<Arc<HostRules>>,
    /// The one who is asked about what the rules do not know; without anybody, it is refused.
    pub ask: Option<Arc<dyn AskHost>>,
    /// The record that decisions are written to.
    pub record: Arc<dyn Record>,
    /// The resolver of names.
    pub resolve: Arc<dyn Resolve>,
    /// The count of open connections.
    pub connections: Connections,
    /// The bounds.
    pub limits: ProxyLimits,
}

/// The bounds of a proxy: how much, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Connections at a time; more wait in the kernel's queue.
    pub connections: usize,
    /// The longest head of a request, in bytes.
    pub head: usize,
    /// For each step in which the client has to say something: first byte, head, SOCKS greeting, ClientHello.
    pub handshake: Duration,
    /// For one look-up of a name.
    pub resolve: Duration,
    /// For each address that is dialled.
    pub dial: Duration,
    /// For an answer to a question; whoever asks has a shorter one.
    pub answer: Duration,
    /// For a connection on which nothing passes.
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
