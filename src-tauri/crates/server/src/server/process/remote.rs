//! Starts the connection to a remote server, with the secrets in its headers or the user's login.

use super::remote_login::{Advice, KeptLogin, Masks, NeededLogin, login_server};
use super::{Process, ProcessHold, RemoteTransport, ServerStderr};
use crate::server::start_error::ServerStartError;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::ServerLogin;
use ironcurtain_mcp::remote::{RemoteConnection, RemoteEndpoint, RemoteOptions, connect};
use ironcurtain_secrets::{Filled, Logins, SecretStore, filled_headers};
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
    let RemoteTransport { dialer, dial, notify, memory, waited_for } = transport;
    let Filled { values, mask } = filled_headers(secrets, server.headers()).await?;
    let headers: Vec<(&str, &str)> =
        values.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    let endpoint = RemoteEndpoint { url: server.url(), target: server.target(), headers: &headers };
    let (logins, masks) = (Logins::of(secrets), Masks::new(mask));
    let login = server.uses_login().then(|| {
        let kept = KeptLogin::new(name, logins.clone(), masks.clone());
        ServerLogin::new(login_server(name, server, dial), Box::new(kept), waited_for.clone())
    });
    let advice = Advice::of(name, server, logins.clone());
    let required = NeededLogin { logins, name: name.to_owned(), url: server.url().to_string(), notify };
    let options = RemoteOptions {
        dialer,
        redact: Box::new(move |text| masks.apply(text)),
        refused: Box::new(move |status, scope| advice.words(status, scope)),
        login,
        needs_login: Box::new(required.recorder()),
        memory: &memory,
        waited_for,
    };
    let RemoteConnection { stdin, stdout, stderr, hold } = connect(endpoint, options).await?;
    let (stderr, hold) = (ServerStderr::new(stderr), ProcessHold::Remote(hold));
    Ok(Process { pid: None, stdin, stdout, stderr, hold, closed: BTreeMap::new(), asking: None })
}
