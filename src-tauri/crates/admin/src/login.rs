//! Logs the user in to a remote server: discovers the authorization server, describes the login to the user, and waits
//! for the browser.
//!
//! - INVARIANT: no client is registered and no page is opened until the user has approved [`LoginPlan::lines`].
//! - The tokens are returned to the caller, which stores them. Descriptions never contain them.

mod browser;
mod state;

pub use browser::open_in_browser;
pub use state::{LoginState, LoginStates};

use crate::named_server::{UnknownServer, named_server};
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, Server, Servers};
use ironcurtain_mcp::remote::login::{CallbackListener, ClientChoice, LoginError, LoginOffer, StoredLogin};
use ironcurtain_secrets::{LoginMark, Logins, Secret, SecretError, SecretFileError, SecretStore, in_time};
use ironcurtain_server::process::{login_server, unrecorded};
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::io;
use url::Url;

/// Login options that the user specified.
#[derive(Clone, Default)]
pub struct LoginOptions {
    /// Id of a client that the user registered with the authorization server.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<Secret>,
    /// Scopes to request instead of the server's.
    pub scopes: Option<Vec<String>>,
}

/// Error returned when a login fails.
#[derive(Debug, thiserror::Error)]
pub enum LogInError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The server is a local program, which needs no login.
    #[error(
        "`{0}` runs on this computer, so there is no login; to store a token for it, run: ironcurtain secrets set NAME"
    )]
    Local(String),
    /// The entry already contains an `Authorization` header.
    #[error(
        "the entry of `{0}` has an `Authorization` header; to log in instead, remove that header from `mcp-servers.json`"
    )]
    HasHeader(String),
    /// The stored logins cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// A step of the login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// No browser can be opened.
    #[error(
        "no browser can be opened here; run this in a terminal: ironcurtain servers login {0} --no-browser"
    )]
    NoBrowser(String),
    /// The operating system provided no random bytes.
    #[error(transparent)]
    Random(#[from] io::Error),
}

/// Login that the user has not approved yet.
pub struct LoginPlan {
    server: Server,
    address: String,
    offer: LoginOffer,
    choice: ClientChoice,
    /// Other servers that use the same authorization server.
    shared_with: Vec<String>,
}

/// Completed login that the caller must store.
pub struct NewLogin {
    /// Name of the server.
    pub server: String,
    /// Entry for the list of logins.
    pub mark: LoginMark,
    /// Tokens, to be stored under [`ironcurtain_secrets::SecretName::of_login`].
    pub tokens: Secret,
}

impl LoginPlan {
    /// Discovers how to log in to a configured server.
    ///
    /// # Errors
    /// Returns [`LogInError`] if the server offers no login, or if it requires a client id and none was specified.
    pub async fn discover(
        home: &Home,
        secrets: &SecretStore,
        (name, options): (&str, LoginOptions),
    ) -> Result<Self, LogInError> {
        let servers = Servers::load(home)?;
        let server = named_server(&servers, name)?.clone();
        let Some(remote) = &server.remote else { return Err(LogInError::Local(name.to_owned())) };
        if !remote.uses_login() {
            return Err(LogInError::HasHeader(name.to_owned()));
        }
        let logins = Logins::of(secrets);
        let before = earlier(&logins, name, remote.url()).await?;
        let own = before.as_ref().and_then(StoredLogin::own_client);
        let choice = match (options.client_id, own) {
            (Some(id), _) => ClientChoice {
                client_id: Some(id),
                client_secret: options.client_secret.map(|secret| secret.reveal().to_owned()),
                ..ClientChoice::default()
            },
            (None, Some((id, secret))) => ClientChoice {
                client_id: Some(id.to_owned()),
                client_secret: secret.map(str::to_owned),
                issuer: before.as_ref().map(|login| login.issuer().to_owned()),
                ..ClientChoice::default()
            },
            (None, None) => ClientChoice::default(),
        };
        let choice = ClientChoice { scopes: options.scopes, ..choice };
        let offer = LoginOffer::discover(login_server(name, remote, unrecorded(name))).await?;
        offer.check(&choice)?;
        let all: BTreeMap<String, LoginMark> = logins.all()?;
        let shares = |(other, mark): (String, LoginMark)| {
            (other != name && mark.issuer == offer.issuer()).then_some(other)
        };
        let shared_with = all.into_iter().filter_map(shares).collect();
        Ok(Self { address: remote.to_string(), server, offer, choice, shared_with })
    }

    /// Describes the login: the server that receives the token, the token's issuer, and its scopes.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let name = &self.server.name;
        let mut lines = vec![
            format!("Server: {name}, {}", self.address),
            format!("Authorization server: {}", self.offer.issuer()),
        ];
        let others = self.offer.other_hosts();
        if !others.is_empty() {
            lines.push(format!("It also uses: {}", others.join(", ")));
        }
        let scopes = self.offer.scopes(&self.choice);
        lines.push(match scopes {
            [] => "Scopes: those that the authorization server gives by default".to_owned(),
            scopes => format!("Scopes: {}", scopes.join(", ")),
        });
        if self.offer.is_elsewhere() {
            lines.push(format!(
                "`{name}` gets a token of another host. Log in only if you know that it uses this host."
            ));
        }
        for other in &self.shared_with {
            lines.push(format!(
                "`{other}` has a login there too. `{name}` gets a token of the same account service."
            ));
        }
        lines.iter().map(|line| visible::line(line)).collect()
    }

    /// Returns the question that asks the user to confirm the login.
    #[must_use]
    pub fn question(&self) -> String {
        let host = visible::line(&self.offer.page_host());
        format!("Open `{host}` in your browser, to log in for `{}`?", self.server.name)
    }

    /// Logs in. Call this only after the user has confirmed [`Self::question`]. `open` opens the page in a browser and
    /// returns `false` if that fails.
    ///
    /// # Errors
    /// Returns [`LogInError`] if a step fails or the user does not complete the login in time.
    pub async fn perform(self, open: impl FnOnce(&Url) -> bool) -> Result<NewLogin, LogInError> {
        let listener = CallbackListener::open().await?;
        let begun = self.offer.begin(self.choice, &listener.redirect()).await?;
        if !open(begun.page()) {
            return Err(LogInError::NoBrowser(self.server.name));
        }
        let callback = listener.answer(&begun.state()).await?;
        let login = begun.finish(callback).await?;
        let mut mark = LoginMark::new(login.url(), login.issuer(), login.scopes())?;
        mark.ends_at = login.ends_at();
        let tokens = Secret::new(login.with_id(&mark.id).text().to_string());
        Ok(NewLogin { server: self.server.name, mark, tokens })
    }
}

/// Returns the stored login to this server. Returns `None` if it does not exist or is for another URL, or if the
/// store is locked.
async fn earlier(logins: &Logins, name: &str, url: &Url) -> Result<Option<StoredLogin>, SecretError> {
    if logins.mark(name).is_none_or(|mark| mark.url != url.as_str()) {
        return Ok(None);
    }
    let (logins, name) = (logins.clone(), name.to_owned());
    match in_time(move || logins.tokens(&name)).await {
        Ok(tokens) => Ok(StoredLogin::parse(tokens.reveal())),
        Err(
            SecretError::Missing(_)
            | SecretError::File(SecretFileError::Missing(_) | SecretFileError::Locked(_)),
        ) => Ok(None),
        Err(problem) => Err(problem),
    }
}
