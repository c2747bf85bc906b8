//! FUSE file system that serves the user's files to a sandbox, and opens them only if a [`Gate`] permits it.
//!
//! - Names and attributes need no permission. Opening or changing a file does. A request that is waiting for
//!   permission blocks no thread.
//! - Hidden paths appear not to exist: they cannot be looked up, listed, opened or created.
//! - Each operation resolves its path again, starting at the root, and follows no symlink.
//! - INVARIANT: every length in a request is checked before use.
//! - The [`Gate`] decides. This crate does not depend on policies and grants.

#![cfg(target_os = "linux")]

mod companions;
mod device;
mod directories;
mod filesystems;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gate;
mod hidden;
mod invalidation;
mod locks;
mod made;
mod nodes;
mod open_files;
mod pending;
mod real_tree;
mod serve;
mod server;
mod signals;
mod wire;

pub use gate::{AccessKind, AskedAccess, AskedFile, Gate, Ticket, WantedAccess};
pub use nodes::FileId;
pub use server::{FileServer, FileServerOptions, Reservation};
