//! The server that a task is about, by its name.

use ironcurtain_config::{Server, Servers};
use ironcurtain_visible as visible;

/// There is no such server.
#[derive(Debug, thiserror::Error)]
#[error("no server is named `{name}`; there is `{known}`")]
pub struct UnknownServer {
    name: String,
    known: String,
}

/// The server of this name.
pub(crate) fn named_server<'a>(servers: &'a Servers, name: &str) -> Result<&'a Server, UnknownServer> {
    servers.find(Some(name)).ok_or_else(|| UnknownServer::among(servers, name))
}

impl UnknownServer {
    /// None of these has the name.
    #[must_use]
    pub fn among(servers: &Servers, name: &str) -> Self {
        let known = servers.names().collect::<Vec<_>>().join("`, `");
        Self { name: visible::line(name), known }
    }
}
