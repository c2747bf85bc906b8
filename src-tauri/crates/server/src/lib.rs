//! Manages the process and mounts of an MCP server, and the network and file access of servers and runs.
//!
//! - A session holds a [`ServerHandle`], which starts the process and returns its connection.
//! - [`network`] judges connections to hosts, and [`served_files`] judges accesses to files. Both ask the user if
//!   necessary.
//! - A mount, a host or a file is available only while a grant, a lease or the policy allows it.
//! - Never judges a call and never reads a client's messages.
//!
//! ```
//! use ironcurtain_server::{ServerError, ServerHandle};
//!
//! /// Restarts the server and returns its process id.
//! async fn restarted(server: &ServerHandle) -> Result<Option<u32>, ServerError> {
//!     server.restart_by_user().await?;
//!     Ok(server.pid())
//! }
//! ```

pub mod network;
mod run_notes;
pub mod served_files;
mod server;

pub use run_notes::{NotesInbox, OpenNote, RunNotes};
pub use server::{
    ActorOptions, Applied, AskingOptions, Containment, ContainmentError, DownReason, EXIT_TIMEOUT,
    InactiveReason, InitializeCallback, MountLease, ReplayState, ServerError, ServerHandle, ServerStartError,
    ServerView, SupervisorError, Versions, always_accessible, check_unchanged, control, entry_paths, process,
};
