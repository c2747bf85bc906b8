//! Opens the connection to a remote server, inserting secrets into its HTTP headers.

use super::remote_login::Login;
use super::{Process, ProcessHold, ServerStderr};
use crate::server::start_error::ServerStartError;
use ironcurtain_config::RemoteServer;
use ironcurtain_egress::Dialer;
use ironcurtain_mcp::remote::{RemoteConnection, RemoteEndpoint, RemoteOptions, connect};
use ironcurtain_mcp::wire::Allowance;
use ironcurtain_secrets::{Filled, SecretStore, filled_headers};
use std::collections::BTreeMap;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Options for connecting to a remote server.
pub(super) struct RemoteStart<'a> {
    pub(super) server: &'a RemoteServer,
    /// Store for the secrets that the headers refer to.
    pub(super) secrets: &'a SecretStore,
    /// Opens the network connections.
    pub(super) dialer: Dialer,
    /// Memory budget for the server's messages.
    pub(super) memory: &'a Allowance,
    /// Token that keeps the daemon from exiting while the connection is open.
    pub(super) waited_for: Option<TaskTrackerToken>,
}

/// Prepares the connection. Nothing is sent until the first message.
pub(super) async fn start(start: RemoteStart<'_>) -> Result<Process, ServerStartError> {
    let RemoteStart { server, secrets, dialer, memory, waited_for } = start;
    let Filled { values, mask } = filled_headers(secrets, server.headers()).await?;
    let headers: Vec<(&str, &str)> =
        values.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    let endpoint = RemoteEndpoint { url: server.url(), target: server.target(), headers: &headers };
    let login = Login::of(server);
    let options = RemoteOptions {
        dialer,
        redact: Box::new(move |text| mask.apply(text)),
        refused: Box::new(move |status| login.words(status)),
        memory,
        waited_for,
    };
    let RemoteConnection { stdin, stdout, stderr, hold } = connect(endpoint, options).await?;
    let (stderr, hold) = (ServerStderr::new(stderr), ProcessHold::Remote(hold));
    Ok(Process { pid: None, stdin, stdout, stderr, hold, closed: BTreeMap::new() })
}
