//! A run's network. The proxy is the only way out. It asks the user about each host when a program connects to the
//! host.

use ironcurtain_sandbox::{Egress, PROXY_PORT, View};
use ironcurtain_server::network::{RunningProxy, ServerNetwork, ServesNetwork};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::UnixListener;

/// Hosts to which programs must connect directly, not through the proxy: the sandbox's loopback interface.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Environment variables that list hosts to connect to directly, not through the proxy.
const NO_PROXY_VARIABLES: [&str; 4] = ["NO_PROXY", "no_proxy", "npm_config_noproxy", "no_grpc_proxy"];

/// Returns the environment variables that configure the proxy. Makes `program` visible in the file view, because git's
/// ssh needs it to connect.
pub(super) fn environment(program: &Path, view: &mut View) -> BTreeMap<String, String> {
    let program = program.to_str();
    program.iter().for_each(|program| view.show_program(program));
    let mut env = ironcurtain_egress::environment(PROXY_PORT, program);
    env.extend(NO_PROXY_VARIABLES.map(|name| (name.to_owned(), LOOPBACK.to_owned())));
    env
}

/// Listeners in a run's sandbox, except the proxy's.
pub(super) struct RunListeners {
    pub(super) sessions: UnixListener,
    /// Listener for the ssh agent, if the run has one.
    pub(super) ssh_agent: Option<UnixListener>,
}

/// Starts the proxy on a sandbox's listener. Also returns the sandbox's other listeners.
pub(super) async fn serve(
    network: &Arc<ServerNetwork>,
    egress: Option<Egress>,
    has_agent: bool,
) -> io::Result<(RunningProxy, RunListeners)> {
    let egress = egress.ok_or(io::ErrorKind::NotConnected)?;
    // The listeners are ready, so this does not block.
    let receive = move || {
        let agent = || has_agent.then(|| egress.socket()).transpose();
        Ok::<_, io::Error>((egress.listener()?, egress.socket()?, agent()?))
    };
    let (proxy, sessions, ssh_agent) = tokio::task::spawn_blocking(receive).await??;
    let to_tokio = |listener: std::os::unix::net::UnixListener| {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    };
    let listeners =
        RunListeners { sessions: to_tokio(sessions)?, ssh_agent: ssh_agent.map(to_tokio).transpose()? };
    Ok((network.serve(proxy), listeners))
}
