//! Serves the user's files to a sandbox over FUSE, and opens them only with the permission of a [`Gate`].
//!
//! - Names and attributes are free. Opening and changing a file waits for the [`Gate`]; a waiting request holds no thread.
//! - Hidden paths do not exist: they cannot be looked up, listed, opened or created.
//! - Each operation resolves its path again from the root, and follows no symlink.
//! - INVARIANT: every length in a request is checked before it is used.
//! - Does not know questions, policies or grants: the [`Gate`] decides.

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
pub use server::{FileServer, FileServerOptions, Reservation};
