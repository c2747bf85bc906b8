//! FUSE file system that serves the user's files to a sandbox, and opens them only if a [`Gate`] permits it.
//!
//! - Names and attributes need no permission. Opening or changing a file does; a request that waits for it blocks no
//!   thread.
//! - Hidden paths appear not to exist: they cannot be looked up, listed, opened or created.
//! - Each operation resolves its path from the root again, and follows no symlink.
//! - INVARIANT: every length in a request is checked before use.
//! - Knows nothing about questions, policies and grants; the [`Gate`] decides.

#![cfg(target_os = "linux")]

mod companions;
mod device;
mod directories;
mod filesystems;
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
pub use server::{FileServer, FileServerOptions};
