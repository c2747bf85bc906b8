//! A run's network. The proxy is the only way out, and asks about each host when a program connects to it.

use crate::network::{ServerNetwork, ServesNetwork, Serving};
use ironcurtain_sandbox::{Egress, PROXY_PORT, View};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Hosts to which programs must connect directly, not through the proxy: the sandbox's loopback interface.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Environment variables that list hosts to connect to directly, not through the proxy.
const EXEMPT: [&str; 4] = ["NO_PROXY", "no_proxy", "npm_config_noproxy", "no_grpc_proxy"];

/// Returns the environment variables that configure the proxy. Makes `program` visible in the file view, because git's
/// ssh needs it to connect.
pub(super) fn environment(program: &Path, view: &mut View) -> BTreeMap<String, String> {
    let program = program.to_str();
    program.iter().for_each(|program| view.show_program(program));
    let mut env = ironcurtain_egress::environment(PROXY_PORT, program);
    env.extend(EXEMPT.map(|name| (name.to_owned(), LOOPBACK.to_owned())));
    env
}

/// Starts the proxy on the listener of a started sandbox.
pub(super) async fn serve(network: &Arc<ServerNetwork>, egress: Option<Egress>) -> io::Result<Serving> {
    let egress = egress.ok_or(io::ErrorKind::NotConnected)?;
    // The listener is ready, so this does not block.
    let listener = tokio::task::spawn_blocking(move || egress.listener()).await?;
    Ok(network.serve(listener?))
}
