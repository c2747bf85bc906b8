//! Network of a run: the proxy is its only way out, and asks about each host at the moment of a connection.

use crate::network::{ServerNetwork, ServesNetwork, Serving};
use ironcurtain_sandbox::{Egress, PROXY_PORT, View};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Names of the sandbox's own loopback, which programs reach without the proxy.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Variables that list the names to reach without the proxy.
const EXEMPT: [&str; 4] = ["NO_PROXY", "no_proxy", "npm_config_noproxy", "no_grpc_proxy"];

/// Returns the variables that make programs use the proxy. `program` connects git's ssh, and is added to the view.
pub(super) fn environment(program: &Path, view: &mut View) -> BTreeMap<String, String> {
    let program = program.to_str();
    program.iter().for_each(|program| view.show_program(program));
    let mut env = ironcurtain_egress::environment(PROXY_PORT, program);
    env.extend(EXEMPT.map(|name| (name.to_owned(), LOOPBACK.to_owned())));
    env
}

/// Serves the listener of a sandbox that has started.
pub(super) async fn serve(network: &Arc<ServerNetwork>, egress: Option<Egress>) -> io::Result<Serving> {
    let egress = egress.ok_or(io::ErrorKind::NotConnected)?;
    // The listener is ready by now, so this does not block.
    let listener = tokio::task::spawn_blocking(move || egress.listener()).await?;
    Ok(network.serve(listener?))
}
