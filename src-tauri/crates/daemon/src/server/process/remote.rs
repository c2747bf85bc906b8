//! The start of a server that runs elsewhere, with the secrets that its headers name.

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

/// Everything that the conversation is begun with.
pub(super) struct RemoteStart<'a> {
    pub(super) server: &'a RemoteServer,
    /// The secrets that its headers name.
    pub(super) secrets: &'a SecretStore,
    /// Opens its connections.
    pub(super) dialer: Dialer,
    /// The memory for what it says.
    pub(super) memory: &'a Allowance,
    /// Until it is dropped, the trusted process does not end.
    pub(super) waited_for: Option<TaskTrackerToken>,
}

/// Begins the conversation; nothing is connected to before there is something to say.
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
