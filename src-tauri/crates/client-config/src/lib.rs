//! Configuration of agent clients: finds it, lists its servers, and adds or removes IronCurtain's shim.
//!
//! - One table ([`CLIENTS`]) describes all clients.
//! - Only the named entries of a file change; comments, order and layout of everything else are kept.
//! - Writes no files: returns a change as a value ([`Edit`]) that the caller can show and write.

mod client;
mod document;
mod edit;
mod entry;
mod locations;
mod table;

pub use client::{FoundClient, KnownClient};
pub use document::DocumentError;
pub use edit::Edit;
pub use entry::{SettingsEntry, Shape, ShimSelection, StartCommand};
pub use locations::Places;
pub use table::CLIENTS;
