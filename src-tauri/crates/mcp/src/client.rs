//! Adapts a stateless client (2026-07-28) to the core, which speaks the handshake versions. The core reads its client through
//! [`ClientReader`].
//!
//! - The first message determines the version. Messages from and to a handshake client pass unchanged.
//! - The core is initialized once, with the capabilities that the client's first request declares.
//! - A server request during a call ends the client's request with `input_required` while the call continues; the client's retry
//!   answers the server. Outside a call, the server gets an error because the client cannot be asked.
//! - INVARIANT: only this module asks the client for input; a server result that tries to is turned into an error.
//! - INVARIANT: a state is unguessable, valid once, for one call of this session and its identical retry, and expires after minutes.
//! - Ids, progress tokens and protocol names are translated; everything else passes unchanged.

mod conversation;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod in_flight;
mod initialize;
mod input_required;
mod logging;
mod outputs;
mod reader;
mod request;
mod result;
mod subscriptions;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use fuzzing::FuzzedClient;
pub use outputs::RefusedRequest;
pub use reader::{ClientMessage, ClientReader, ClientVersion};
