//! The daemon, IronCurtain's trusted process. Manages sessions, MCP mediation, consent, grants, roots and the audit
//! log.
//!
//! - Independent of any UI toolkit: a user interface implements `ironcurtain_consent::Consent`.
//! - Each piece of mutable state has one owner, and no lock is held across an await.
//! - Errors fail closed: the call is denied with a reason, and the session continues.

mod accepting;
mod attach;
mod changed_tools;
mod control;
mod daemon;
mod daemon_state;
mod descriptors;
mod desktop_consent;
mod event_log;
mod health;
mod identity;
mod identity_gate;
pub mod judging;
mod machine;
mod managed_policy;
mod metrics;
pub mod network;
mod record_export;
pub mod record_head;
mod reload;
mod run;
mod run_notes;
mod served_files;
pub mod server;
mod services;
mod session;
mod session_log;
mod shutdown;
mod upstream;
mod view;
mod workspaces;

pub use daemon::{
    ChangedServers, Daemon, DaemonOptions, ENDING, GrantRequest, GrantRequestError, GrantTarget, GrantTerms,
    RestartError, StartError, VerifiedClient, start,
};
pub use event_log::EventLog;
pub use ironcurtain_connection::ListenError;
pub use record_export::path_form;
pub use view::{shown_entry, time_of_day};
