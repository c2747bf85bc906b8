//! Proxy through which a sandbox's entire network traffic passes. It checks the target of every connection.
//!
//! The sandbox creates a listener in its network namespace and passes it to the proxy, which speaks HTTP CONNECT,
//! plain HTTP and SOCKS5. [`HostRules`] lists the reachable hosts. For other hosts, the proxy can ask the user
//! ([`AskHost`]).
//!
//! - A connection is opened only after a [`HostDecision`] allows it and [`Record`] has recorded it.
//! - Names are resolved once. Every address is checked, and only checked addresses are connected to.
//! - On port 443, no byte is forwarded before a ClientHello has named the allowed host.
//! - Every wait is limited. Dropping the future returned by [`serve`] closes all connections.
//! - TLS is never decrypted, no secrets are held and no process is started.

mod activity;
pub mod address;
mod ask;
pub mod connect;
mod connections;
mod dialer;
mod environment;
mod gate;
mod hello;
mod host;
mod http;
mod proxy;
mod record;
mod refusal;
mod resolve;
mod rules;
mod serve;
mod socks;
#[cfg(target_os = "linux")]
pub mod tun;
mod tunnel;

pub use ask::{AskHost, HostAnswer};
pub use connections::Connections;
pub use dialer::{DialPermit, Dialed, Dialer};
pub use environment::environment;
pub use hello::{ClientHello, ClientHelloError, inspect};
pub use host::{Host, HostError, HostPort};
pub use proxy::{Proxy, ProxyLimits};
pub use record::{ConnectionEvent, ConnectionVerdict, Protocol, Record, RecordError};
pub use refusal::ConnectionRefusal;
pub use resolve::{Resolve, SystemResolver};
pub use rules::{GrantedHost, HostDecision, HostRules, PermittedBy, RuleError};
pub use serve::serve;

/// Loopback port on which the proxy listens inside the sandbox's network namespace.
pub const PORT: u16 = 3128;

pub use futures_util::future::BoxFuture;
