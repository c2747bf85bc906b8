//! Reach of a server beyond its session, as far as the judge needs it.
//!
//! - Determined by the caller from how the server was started and what is currently mounted.

/// Reach of a server beyond its session at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerReach {
    /// It runs in a sandbox without network, and can access only its program, the session's folder and its own data folder.
    Nothing,
    /// It can access or may reach something else.
    Something,
    /// It cannot be determined right now; no allow rule relies on it.
    #[default]
    Unknown,
}
