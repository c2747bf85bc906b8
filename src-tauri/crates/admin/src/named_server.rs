//! The server that a task is about, by its name.

use ironcurtain_daemon::config::{Server, Servers};
use ironcurtain_daemon::consent::visible;

/// There is no such server.
#[derive(Debug, thiserror::Error)]
#[error("no server is named `{name}`; there is `{known}`")]
pub struct UnknownServer {
    name: String,
    known: String,
}

/// The server of this name.
pub(crate) fn named_server<'a>(servers: &'a Servers, name: &str) -> Result<&'a Server, UnknownServer> {
    servers.find(Some(name)).ok_or_else(|| UnknownServer {
        name: visible::line(name),
        known: servers.names().collect::<Vec<_>>().join("`, `"),
    })
}
