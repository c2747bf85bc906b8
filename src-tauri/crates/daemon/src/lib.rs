//! The trusted process: sessions, MCP mediation, consent, grants, roots and the audit log, on tokio.
//!
//! - Nothing here knows a toolkit: whoever can ask a person implements [`consent::Consent`].
//! - Every mutable thing has one owner; no lock is held across an await.
//! - Whatever fails, fails closed: the call is denied with a reason, and the session lives on.

pub mod annotating;
mod autostart;
pub mod catalog;
mod clock;
mod config;
pub mod consent;
pub mod containment;
mod control;
mod daemon;
mod descriptors;
mod edit;
mod event_log;
mod grants;
mod home;
mod identity;
mod in_force;
pub mod installs;
pub mod judging;
mod last_words;
mod law;
mod listener;
mod mounts;
mod network;
mod protection;
pub mod replay;
pub mod resolve;
mod resolved_call;
mod server;
mod session;
mod troubles;
mod view;
mod wire;

pub use config::{
    AutostartSettings, Config, ConfigError, FileView, FilesystemSettings, GitConfigSettings, LimitSettings,
    NetworkSettings, PassEnv, Sandbox, SandboxBackend, SandboxPolicy, SandboxSettings, Server, Servers,
};
pub use daemon::{Daemon, ENDING, Options, StartError, start};
pub use event_log::EventLog;
pub use grants::{StandingGrant, StoreError, Subject};
pub use home::{Home, HomeError};
pub use law::{Law, LawError, LawFiles, canonical_home};
pub use listener::ListenError;
pub use protection::protection;
pub use server::inspect::{InspectError, Inspection, ListedTool, fingerprint, inspect};
