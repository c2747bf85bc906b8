//! The one way out of a sandbox: a proxy that judges where every connection goes, before it goes there.
//!
//! One listener, made inside the sandbox's network namespace and handed out of it, speaks HTTP CONNECT, plain HTTP and
//! SOCKS5. What may be reached is in [`HostRules`]; what they do not know can be put to a person ([`AskHost`]).
//!
//! - Nothing leaves without an allowing [`HostDecision`] that is on record ([`Record`]).
//! - A name is resolved once, every address is judged, and what is dialled is an address that was judged.
//! - On port 443 not a byte goes out before a ClientHello has named the host that was allowed.
//! - Every wait has a bound; dropping the future of [`serve`] ends every connection.
//! - It never opens TLS, has no secret, and starts no process.

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

/// The port the proxy has inside the sandbox's network namespace.
pub const PORT: u16 = 3128;

pub use futures_util::future::BoxFuture;
