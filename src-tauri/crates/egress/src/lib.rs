//! The only way out of a sandbox: a proxy that judges every connection's target before connecting.
//!
//! One listener, created inside the sandbox's network namespace and passed out of it, speaks HTTP CONNECT, plain HTTP and
//! SOCKS5. [`HostRules`] lists the reachable hosts; for any other host the proxy can ask the user ([`AskHost`]).
//!
//! - No connection leaves without an allowing [`HostDecision`] that was recorded ([`Record`]).
//! - A name is resolved once and every address is judged; only judged addresses are dialled.
//! - On port 443 no byte is forwarded before a ClientHello has named the allowed host.
//! - Every wait has a limit; dropping the future of [`serve`] closes every connection.
//! - Never decrypts TLS, holds no secret, and starts no process.

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

/// Port of the proxy inside the sandbox's network namespace.
pub const PORT: u16 = 3128;

pub use futures_util::future::BoxFuture;
