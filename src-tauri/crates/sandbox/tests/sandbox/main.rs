//! Tests real sandboxes with bubblewrap, namespaces and mounts. A program inside each sandbox examines it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod harness;

mod calls;
mod checking;
mod command;
mod grants;
mod host_read;
mod masks;
mod network;
mod removal;
mod runtimes;
mod served;
mod special;
mod standing_grants;
mod termination;
mod tun;
mod unix_sockets;
mod user;
mod view;
