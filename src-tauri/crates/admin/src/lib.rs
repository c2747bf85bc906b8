//! Tasks that run for the person and end: adding a known server, installing its package, asking it for its tools, annotating
//! them, trying calls on a policy, and judging those on record by another one.
//!
//! - Above the daemon, which knows nothing of it: nothing here is in the way of a call, and no session needs it.
//! - Writes to the person's configuration, to our packages and their records; never to the audit log, and to the
//!   database of grants only the user's decision about a server's identity.
//! - A server or a package manager that is started here is sandboxed, holds no grant, and is gone when the function returns.

pub mod annotate;
pub mod catalog;
pub mod clients;
pub mod doctor;
pub mod export;
mod file_edit;
pub mod identity;
pub mod inspect;
pub mod install;
pub mod introduction;
mod json_edit;
pub mod limits;
mod named_server;
pub mod openings;
pub mod plain_secrets;
pub mod profiles;
pub mod removal;
pub mod replay;
pub mod rules;
mod servers_file;
pub mod settings;
pub mod trial;

pub use file_edit::FileEditError;
pub use json_edit::JsonEditError;
pub use named_server::UnknownServer;
pub use servers_file::ServerChangeError;
