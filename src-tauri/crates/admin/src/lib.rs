//! Administrative tasks for the user: adds servers, installs their packages, inspects and annotates their tools, and evaluates policies.
//!
//! - Depends on the daemon, which does not use this crate. Calls and sessions work without it.
//! - Writes to the user's configuration, and to packages and their records. Never writes to the audit log; writes to the grants
//!   database only the user's decisions about a server's identity and its changed tools.
//! - Servers and package managers started here are sandboxed, have no grants, and have exited when the function returns.

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
pub mod record_export;
pub mod removal;
pub mod replay;
pub mod rules;
mod servers_file;
pub mod settings;
pub mod tool_pins;
pub mod trial;

pub use file_edit::FileEditError;
pub use json_edit::JsonEditError;
pub use named_server::UnknownServer;
pub use servers_file::ServerChangeError;
