//! Settings of agent clients: finds them, lists their servers, and adds or removes IronCurtain's shim.
//!
//! - A single table ([`CLIENTS`]) describes all clients.
//! - Edits change only the named entries of a file, and preserve the comments, order and layout of everything
//!   else.
//! - This crate writes no files. It returns each change as an [`Edit`], which the caller can display and write.

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
pub use locations::ClientDirs;
pub use table::CLIENTS;
