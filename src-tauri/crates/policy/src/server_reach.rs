//! Resources that a server can access beyond its session, as far as the judge needs to know.
//!
//! - The caller derives it from the server's sandbox and its current mounts.

/// Resources that a server can currently access beyond its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerReach {
    /// None: the server runs in a sandbox without a network and can access only its program, the
    /// session's folder and its own data folder.
    Nothing,
    /// At least one: the server can access other files, or the network.
    Something,
    /// Currently unknown; no allow rule may rely on it.
    #[default]
    Unknown,
}
