//! The daemon, IronCurtain's trusted process: sessions, authorization, runs, and requests from the app and the CLI.
//!
//! - Independent of any UI toolkit: a user interface implements `ironcurtain_consent::Consent`.
//! - Each piece of mutable state has one owner, and no lock is held across an await.
//! - Errors fail closed: the call is denied with a reason, and the session continues.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use ironcurtain_consent::NoFrontEnd;
//! use ironcurtain_daemon::{DaemonOptions, start};
//! use std::sync::Arc;
//!
//! let home = ironcurtain_config::home::Home::from_env()?;
//! let options = DaemonOptions { home, programs: "/usr/lib/ironcurtain".into(), allow_root: false };
//! let daemon = start(options, Arc::new(NoFrontEnd)).await?;
//! # Ok(())
//! # }
//! ```

mod attach;
mod control;
mod daemon;
mod daemon_state;
mod descriptors;
mod event_log;
mod identity;
mod managed_policy;
mod record_export;
mod run;
mod session;
mod upstream;
mod view;

pub use daemon::{
    ChangedServers, Daemon, DaemonOptions, GrantChanges, GrantRequest, GrantRequestError, GrantTarget,
    RestartError, SHUTDOWN_TIMEOUT, StartError, VerifiedClient, start,
};
pub use event_log::EventLog;
pub use ironcurtain_connection::ListenError;
pub use record_export::path_form;
pub use view::{shown_entry, time_of_day};
