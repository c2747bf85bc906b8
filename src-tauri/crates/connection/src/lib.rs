//! Connections to the trusted process: authenticates peers, receives the client's streams, and connects one client to
//! several servers.
//!
//! - Refuses a peer that belongs to another user before reading its input.
//! - Opens sessions only through [`AggregateHost::open`] and knows nothing else about them.
//! - Never judges a call and never asks the user: every request for a server goes to the server's session.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use ironcurtain_connection::{Listener, Peer};
//! use std::path::Path;
//!
//! let listener = Listener::bind(Path::new("/run/user/1000/ironcurtain.socket"), Path::new("/var/lib/ironcurtain"))?;
//! if let Some(mut peer) = Peer::accept(listener.accept().await?).await {
//!     peer.welcome(None).await?;
//! }
//! # Ok(())
//! # }
//! ```

mod aggregate;
mod listener;
mod selection;
mod ticket;

pub use aggregate::{
    Aggregate, AggregateHandover, AggregateHost, OpenedAggregate, ToolLookup, UpstreamEvent, UpstreamEvents,
    UpstreamSession,
};
pub use listener::{
    ClientStdio, ListenError, Listener, Locks, OutgoingNote, Peer, RunDescriptors, forward_notes, send,
};
pub use selection::unknown_profile;
pub use ticket::{HANDOVER_ERROR, TicketError, as_base64, issue_ticket, redeem};
