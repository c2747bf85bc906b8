//! The client that a grant is tied to.

use ironcurtain_protocol::ClientView;

/// The key of a client whose executable the kernel does not show.
pub const UNKNOWN: &str = "unknown";

/// A proved client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The client's executable, which grants are tied to.
    pub key: String,
    /// For people.
    pub view: ClientView,
}
