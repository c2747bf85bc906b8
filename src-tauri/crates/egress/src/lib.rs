//! Proxy that is a sandbox's only way to the network. It checks the target of every connection before connecting.
//!
//! The sandbox creates one listener in its network namespace and passes it to the proxy, which speaks HTTP CONNECT,
//! plain HTTP and SOCKS5 on it. [`HostRules`] lists the reachable hosts; for other hosts, the proxy can ask the user
//! through [`AskHost`].
//!
//! - Opens no connection without a [`HostDecision`] that allows it and that [`Record`] has recorded.
//! - Resolves a name once, checks every address, and dials only checked addresses.
//! - On port 443, forwards no byte before a ClientHello has named the allowed host.
//! - Limits every wait. Dropping the future of [`serve`] closes all connections.
//! - Never decrypts TLS, holds no secrets and starts no process.

pub mod address;
mod ask;
pub mod connect;
mod connections;
mod dial;
mod environment;
mod gate;
mod hello;
mod host;
mod http;
mod io;
mod proxy;
mod record;
mod refusal;
mod resolve;
mod rules;
mod serve;
mod socks;
mod tunnel;

pub use ask::{AskHost, HostAnswer};
pub use connections::Connections;
pub use dial::{DialPermit, Dialed, Dialer};
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
