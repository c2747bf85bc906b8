//! Finds a server by name.

use ironcurtain_config::{Server, Servers};
use ironcurtain_visible as visible;

/// Error if no server has the given name.
#[derive(Debug, thiserror::Error)]
#[error("no server is named `{name}`; existing servers: `{known}`")]
pub struct UnknownServer {
    name: String,
    known: String,
}

/// Returns the server with this name.
pub(crate) fn named_server<'a>(servers: &'a Servers, name: &str) -> Result<&'a Server, UnknownServer> {
    servers.find(Some(name)).ok_or_else(|| UnknownServer::new(servers, name))
}

impl UnknownServer {
    /// Creates the error, with a list of the existing server names.
    #[must_use]
    pub fn new(servers: &Servers, name: &str) -> Self {
        let known = servers.names().collect::<Vec<_>>().join("`, `");
        Self { name: visible::line(name), known }
    }
}
