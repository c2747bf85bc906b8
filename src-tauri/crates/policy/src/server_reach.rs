//! Reach of a server: the resources that it can access beyond its session.
//!
//! - The caller derives the reach from the server's sandbox and current mounts.

/// Resources that a server can currently access beyond its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerReach {
    /// No resources. The server runs in a sandbox without a network and can access only its program, the session's
    /// folder and its own data folder.
    Nothing,
    /// Other files or the network.
    Something,
    /// Currently unknown. No allow rule may rely on it.
    #[default]
    Unknown,
}
