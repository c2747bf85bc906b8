//! Client to which a grant is tied.

use ironcurtain_protocol::ClientView;

/// Key of a client whose executable is unknown.
pub const UNKNOWN: &str = "unknown";

/// A verified client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Executable, to which grants are tied.
    pub key: String,
    /// Client for display.
    pub view: ClientView,
}
