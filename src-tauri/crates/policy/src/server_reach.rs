//! Resources that a server can access beyond its session, to the extent that the judge needs to know.
//!
//! - The caller derives this from the server's sandbox and its current mounts.

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
