//! The user's administrative tasks: adds, installs, inspects and annotates servers, connects agent clients, and tests
//! policies.
//!
//! - Depends on the daemon, never the other way around. Calls and sessions do not use this crate.
//! - Writes the user's configuration, packages and their records. Never writes the audit log. The only database writes
//!   are the user's decisions about a server's identity and its changed tools.
//! - Servers and package managers run sandboxed and without grants, and have exited when a function returns.

pub mod annotate;
pub mod catalog;
pub mod clients;
pub mod collector_export;
pub mod doctor;
pub mod entry_permissions;
pub mod export;
mod file_edit;
pub mod identity;
pub mod inspect;
pub mod install;
mod json_edit;
pub mod limits;
pub mod login;
mod named_server;
pub mod plain_secrets;
pub mod profiles;
pub mod removal;
pub mod replay;
pub mod rules;
pub mod server_summary;
mod servers_file;
pub mod settings;
pub mod tool_pins;
pub mod trial;

pub use file_edit::FileEditError;
pub use json_edit::JsonEditError;
pub use named_server::UnknownServer;
pub use servers_file::ServerChangeError;
