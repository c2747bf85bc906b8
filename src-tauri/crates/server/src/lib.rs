//! The process of an MCP server and its mounts, and the network and files of servers and runs.
//!
//! - A session holds a [`ServerHandle`], which starts the process and returns its connection.
//! - [`network`] judges connections to hosts, and [`served_files`] judges accesses to files. Both ask the user.
//! - A mount, a host or a file is available only while a grant, a lease or the policy allows it.
//! - Never judges a call and never reads a client's messages.
//!
//! ```
//! use ironcurtain_server::{ServerError, ServerHandle};
//!
//! /// Starts the server again, and returns its process id.
//! async fn restarted(server: &ServerHandle) -> Result<Option<u32>, ServerError> {
//!     server.start_again().await?;
//!     Ok(server.pid())
//! }
//! ```

pub mod network;
mod run_notes;
pub mod served_files;
mod server;

pub use run_notes::{OpenNote, RunNotes};
pub use server::{
    ActorOptions, Applied, AskingOptions, Containment, ContainmentError, DownReason, InitializeCallback,
    LISTENING, MountLease, ReplayState, ServerError, ServerHandle, ServerStartError, ServerView,
    SupervisorError, Suspension, Versions, control, process, still_there,
};
