//! Services that all sessions share: the current policy and settings, server identities, health, metrics and logs.
//!
//! - [`Services`] contains them. [`InitialState`] reads the configuration, and [`Reloader`] follows its changes.
//! - An invalid or manipulated file never takes effect: its previous version stays in use, and [`Health`] reports it.
//! - Never judges a call, starts a server or opens a session.
//!
//! ```
//! use ironcurtain_services::Services;
//! use std::sync::Arc;
//!
//! /// Returns `true` if the policy changed since `before`.
//! fn has_changed(services: &Services, before: &Arc<ironcurtain_config::PolicySnapshot>) -> bool {
//!     services.snapshot().version != before.version
//! }
//! ```

mod accept_retry;
mod changed_tools;
mod desktop_consent;
mod desktop_pairing;
mod health;
mod identity_gate;
mod metrics;
mod rate_limiter;
pub mod record_head;
mod reload;
mod sandbox_probe;
mod services;
mod session_log;
mod shutdown;
mod workspaces;

pub use accept_retry::next_connection;
pub use changed_tools::{ChangedTools, DECISION_POLL_INTERVAL};
pub use desktop_consent::{
    AlreadyAttached, AttachedHost, AttachedHosts, Attachment, DESKTOP_LOST, DesktopConsent, OtherDesktop,
};
pub use desktop_pairing::{AcceptedCode, CodeError, DesktopPairing, PairingQuestionsPaused, PairingTurn};
pub use health::{Health, HealthComponent};
pub use identity_gate::{Identities, IdentityGate, trouble as identity_trouble};
pub use metrics::{Gauges, Metrics};
pub use rate_limiter::RateLimiter;
pub use record_head::RecordHead;
pub use reload::{InitialState, Reloader, ReloaderParts, WritablePaths};
pub use sandbox_probe::{SandboxProbe, SandboxProbeOptions};
pub use services::Services;
pub use session_log::{SessionLog, SessionLogs};
pub use shutdown::Shutdown;
pub use workspaces::{DeclinedWorkspace, Workspaces};
