//! The client's side of the revision without a handshake: it stands before a core that speaks the revisions with one, and the core
//! reads its client by [`ClientReader`].
//!
//! - The first message picks the version. What a client of the revisions with a handshake says, and is told, is not touched.
//! - The core is greeted once, with the abilities that the first request of the client declares.
//! - A request of the server during a call ends the client's request with `input_required`, while the call goes on; the client's
//!   retry answers the server. Outside of a call the server is told that the client cannot be asked.
//! - INVARIANT: the client is asked for input by us alone: a result of the server that would do so is an error.
//! - INVARIANT: a state cannot be guessed, opens one call of this session once, only for the same call, and for some minutes.
//! - Ids, progress tokens and names of the protocol are exchanged; everything else stays as it was written.

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
