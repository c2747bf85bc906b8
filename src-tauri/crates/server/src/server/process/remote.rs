//! Starts the connection to a remote server, with the secrets in its headers or the user's login.

use super::remote_login::{Advice, LoginRequirement, Masks, SecretLoginStore, login_server};
use super::{Process, ProcessGuard, RemoteTransport, ServerStderr};
use crate::server::start_error::ServerStartError;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::ServerLogin;
use ironcurtain_mcp::remote::{RemoteConnection, RemoteEndpoint, RemoteOptions, connect};
use ironcurtain_secrets::{FilledSettings, Logins, SecretStore, fill_headers};
use std::collections::BTreeMap;

/// Options for connecting to a remote server.
pub(super) struct RemoteStart<'a> {
    /// Name of the server.
    pub(super) name: &'a str,
    pub(super) server: &'a RemoteServer,
    /// Store with the headers' secrets and the login.
    pub(super) secrets: &'a SecretStore,
    pub(super) transport: RemoteTransport,
}

/// Prepares the connection. Nothing is sent until the first message.
pub(super) async fn start(start: RemoteStart<'_>) -> Result<Process, ServerStartError> {
    let RemoteStart { name, server, secrets, transport } = start;
    let RemoteTransport { dialer, dial, notify, memory, shutdown_token } = transport;
    let FilledSettings { values, mask } = fill_headers(secrets, server.headers()).await?;
    let headers: Vec<(&str, &str)> =
        values.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    let endpoint = RemoteEndpoint { url: server.url(), target: server.target(), headers: &headers };
    let (logins, masks) = (Logins::of(secrets), Masks::new(mask));
    let login = server.uses_login().then(|| {
        let kept = SecretLoginStore::new(name, logins.clone(), masks.clone());
        ServerLogin::new(login_server(name, server, dial), Box::new(kept), shutdown_token.clone())
    });
    let advice = Advice::of(name, server, logins.clone());
    let required = LoginRequirement { logins, name: name.to_owned(), url: server.url().to_string(), notify };
    let options = RemoteOptions {
        dialer,
        redact: Box::new(move |text| masks.apply(text)),
        refused: Box::new(move |status, scope| advice.message(status, scope)),
        login,
        needs_login: Box::new(required.recorder()),
        memory: &memory,
        shutdown_token,
    };
    let RemoteConnection { stdin, stdout, stderr, guard } = connect(endpoint, options).await?;
    let (stderr, guard) = (ServerStderr::new(stderr), ProcessGuard::Remote(guard));
    Ok(Process { pid: None, stdin, stdout, stderr, guard, read_only: BTreeMap::new(), asking: None })
}
