//! Identity of the client that owns a grant.

use ironcurtain_protocol::ClientView;

/// Value of [`Client::key`] if the executable is unknown.
pub const UNKNOWN: &str = "unknown";

/// Client whose identity the kernel verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Path of the client's executable, by which grants identify the client.
    pub key: String,
    /// Description of the client for the user.
    pub view: ClientView,
}
