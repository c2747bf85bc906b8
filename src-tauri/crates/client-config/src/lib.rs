//! The configuration of agent clients: where each keeps it, which servers it names, and the text that it has with IronCurtain's
//! shim in it or without.
//!
//! - One table ([`CLIENTS`]) drives all of it.
//! - Only the named entries of a text change; comments, order and layout of everything else stay.
//! - Writes nothing: a change is a value ([`Edit`]) that is shown before anybody writes it.

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
