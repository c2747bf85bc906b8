//! FUSE file system that serves the user's files to a sandbox. Files are opened only if a [`Gate`] permits it.
//!
//! - Names and attributes are visible without permission. Opening or changing a file requires it. A request that waits
//!   for permission blocks no thread.
//! - Hidden paths appear to be missing. They cannot be looked up, listed, opened or created.
//! - Each operation resolves its path from the root again and follows no symlinks.
//! - INVARIANT: every length in a request is checked before use.
//! - The [`Gate`] makes all decisions, so this crate does not depend on policies and grants.

#![cfg(target_os = "linux")]

mod companions;
mod created_files;
mod device;
mod directories;
mod filesystems;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gate;
mod hidden;
mod invalidation;
mod locks;
mod nodes;
mod open_files;
mod path_tree;
mod pending;
mod real_tree;
mod serve;
mod server;
mod signals;
mod wire;

pub use gate::{AccessKind, AskedAccess, AskedFile, Gate, Ticket, WantedAccess};
pub use nodes::FileId;
pub use server::{FileServer, FileServerOptions, Reservation};
pub use signals::is_terminating;
