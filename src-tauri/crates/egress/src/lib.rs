//! The one way out of a sandbox: a proxy that judges where every connection goes, before it goes there.
//!
//! One listener, made inside the sandbox's network namespace and handed out of it, speaks HTTP CONNECT, plain HTTP and
//! SOCKS5. What may be reached is in [`Rules`]; what they do not know can be put to a person ([`Ask`]).
//!
//! - Nothing leaves without an allowing [`Decision`] that is on record ([`Record`]).
//! - A name is resolved once, every address is judged, and what is dialled is an address that was judged.
//! - On port 443 not a byte goes out before a ClientHello has named the host that was allowed.
//! - Every wait has a bound; dropping the future of [`serve`] ends every connection.
//! - It never opens TLS, has no secret, and starts no process.

pub mod address;
mod ask;
pub mod connect;
mod connections;
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

pub use ask::{Answer, Ask};
pub use connections::Connections;
pub use environment::environment;
pub use hello::{Hello, HelloError, inspect};
pub use host::{Host, HostError, Target};
pub use proxy::{Limits, Proxy};
pub use record::{Event, Protocol, Record, Verdict};
pub use refusal::Refusal;
pub use resolve::{Resolve, SystemResolver};
pub use rules::{By, Decision, Grant, RuleError, Rules};
pub use serve::serve;

/// The port the proxy has inside the sandbox's network namespace.
pub const PORT: u16 = 3128;

/// A future behind a trait that can be an object.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
