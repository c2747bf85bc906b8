//! Credentials for a remote server, and the error messages to show if the server rejects them.

use ironcurtain_config::RemoteServer;
use ironcurtain_secrets::{SecretName, named_in_header};

/// Kind of credentials that are sent to a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login {
    address: String,
    /// Server address to show in suggested commands, without its query.
    typed: String,
    with: LoginWith,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LoginWith {
    Nothing,
    /// Value that is written in the server's entry.
    Plain,
    Secret(SecretName),
}

impl Login {
    pub(super) fn of(server: &RemoteServer) -> Self {
        let mut headers = server.headers().iter();
        let secret = headers.clone().find_map(|(_, value)| Some(named_in_header(value).ok()??.1));
        let with = match secret {
            Some(secret) => LoginWith::Secret(secret),
            None if headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization")) => LoginWith::Plain,
            None => LoginWith::Nothing,
        };
        let typed = if server.url().query().is_some() { "URL".to_owned() } else { server.to_string() };
        Self { address: server.to_string(), typed, with }
    }

    /// Returns the error message for an HTTP status of 401 or 403, including advice.
    pub(super) fn words(&self, status: u16) -> String {
        let Self { address, typed, with } = self;
        let refused = if status == 401 { "did not accept" } else { "refused access to" };
        match with {
            LoginWith::Nothing if status == 401 => format!(
                "`{address}` wants you to sign in (401); IronCurtain cannot sign in through a browser yet; if you have a token, run: \
                 ironcurtain servers add {typed} --token"
            ),
            LoginWith::Nothing => format!(
                "`{address}` refused access ({status}); if you have a token, run: ironcurtain servers add {typed} --token"
            ),
            LoginWith::Plain => format!(
                "`{address}` {refused} the token in its entry ({status}); to give it another one, run: ironcurtain servers add \
                 {typed} --token"
            ),
            LoginWith::Secret(secret) => format!(
                "`{address}` {refused} your secret `{secret}` ({status}); to store another one, run: ironcurtain secrets set {secret}"
            ),
        }
    }
}
