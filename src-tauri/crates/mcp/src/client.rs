//! Adapts a stateless client (2026-07-28) to the core. The core is the session logic and uses the handshake versions.
//! The core reads its client through [`ClientReader`].
//!
//! - The first message determines the protocol version. Messages from and to a handshake client are forwarded
//!   unchanged.
//! - The core is initialized once, with the capabilities that the client's first request declares.
//! - A server request during a call is sent to the client as an `input_required` result, which completes the client's
//!   request. The call itself continues. The client's retry answers the server. Outside a call, the server gets an
//!   error, because the client cannot be asked.
//! - INVARIANT: only this module asks the client for input. A server result that asks for input is replaced with an
//!   error.
//! - INVARIANT: a state (`requestState`) cannot be guessed, can be used once and only for its own call in this
//!   session, and expires after a few minutes.
//! - Ids, progress tokens and protocol fields are translated. Everything else is forwarded unchanged.

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
