//! Logs the user in to a remote server: discovers the authorization server, describes the login to the user, and waits
//! for the browser.
//!
//! - INVARIANT: no client is registered and no page is opened until the user has approved [`LoginPlan::lines`].
//! - The login is returned to the caller, which stores it. Descriptions never contain tokens.

mod browser;
mod state;

pub use browser::open_in_browser;
pub use ironcurtain_mcp::remote::login::{RedirectAddress, StoredLogin};
pub use state::{LoginState, LoginStates};

use crate::named_server::{UnknownServer, named_server};
use futures_util::FutureExt;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, Server, Servers};
use ironcurtain_mcp::remote::login::{CallbackListener, ClientChoice, LoginError, LoginOffer};
use ironcurtain_paths::random_name;
use ironcurtain_secrets::{
    LoginRecord, Logins, Secret, SecretError, SecretFileError, SecretStore, with_unlock_timeout,
};
use ironcurtain_server::process::{login_server, revoke_unused, unrecorded};
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
    /// Redirect address that the user registered for that client, or `None` for a random port.
    pub redirect: Option<RedirectAddress>,
    /// Scopes to request instead of the server's scopes.
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
    /// The user's organization does not allow the server.
    #[error("the server `{server}` cannot be used: {reason}")]
    Refused {
        /// Name of the server.
        server: String,
        /// Reason, including the name of the organization.
        reason: String,
    },
    /// The stored logins cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// A step of the login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The user cancelled the login.
    #[error("the login was cancelled")]
    Cancelled,
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
    home: Home,
    logins: Logins,
    server: Server,
    address: String,
    offer: LoginOffer,
    choice: ClientChoice,
    /// Other servers that use the same authorization server.
    shared_with: Vec<String>,
}

/// Completed login that the caller must store with [`ironcurtain_server::process::store_login`].
pub struct NewLogin {
    /// The server's entry.
    pub server: Server,
    /// The login, with a new id.
    pub login: StoredLogin,
}

impl LoginPlan {
    /// Discovers how to log in to a configured server.
    ///
    /// # Errors
    /// Returns [`LogInError`] if the server offers no login, or if it requires a client id that was not specified.
    pub async fn discover(
        home: &Home,
        secrets: &SecretStore,
        (name, options): (&str, LoginOptions),
    ) -> Result<Self, LogInError> {
        let servers = Servers::load(home)?;
        let server = named_server(&servers, name)?.clone();
        if let Some(reason) = server.refused {
            return Err(LogInError::Refused { server: server.name, reason });
        }
        let Some(remote) = &server.remote else { return Err(LogInError::Local(name.to_owned())) };
        if !remote.uses_login() {
            return Err(LogInError::HasHeader(name.to_owned()));
        }
        let logins = Logins::of(secrets);
        let stored_client = stored_client(&logins, name, remote.url()).await?;
        let choice = match options.client_id {
            Some(id) => ClientChoice {
                client_id: Some(id),
                client_secret: options.client_secret.map(|secret| secret.reveal().to_owned()),
                redirect: options.redirect,
                ..ClientChoice::default()
            },
            None => stored_client.unwrap_or_default(),
        };
        let choice = ClientChoice { scopes: options.scopes, ..choice };
        let offer = LoginOffer::discover(login_server(name, remote, unrecorded(name))).await?;
        offer.check(&choice)?;
        let all: BTreeMap<String, LoginRecord> = logins.all()?;
        let shares = |(other, record): (String, LoginRecord)| {
            (other != name && record.issuer == offer.issuer()).then_some(other)
        };
        let shared_with = all.into_iter().filter_map(shares).collect();
        let (home, address) = (home.clone(), remote.to_string());
        Ok(Self { home, logins, address, server, offer, choice, shared_with })
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
        if self.offer.has_other_host() {
            lines.push(format!(
                "`{name}` gets a token of another host. Log in only if you know that it uses this host."
            ));
        }
        if !self.offer.has_related_hosts() {
            lines.push(format!(
                "You log in at `{}`, but `{}` gets the result. Log in only if both belong to the same service.",
                self.offer.page_host(),
                self.offer.token_host()
            ));
        }
        if let Some(resource) = self.offer.wider_resource() {
            lines.push(format!("The token is valid for all of `{resource}`, not only for `{name}`."));
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
    /// returns `false` if that fails. While the user logs in, `cancelled` cancels the login.
    ///
    /// # Errors
    /// Returns [`LogInError`] if a step fails or the user does not complete the login in time.
    pub async fn perform(
        self,
        open: impl AsyncFnOnce(&Url) -> bool,
        cancelled: impl Future<Output = ()>,
    ) -> Result<NewLogin, LogInError> {
        let Self { home, logins, server, offer, choice, .. } = self;
        let id = random_name()?;
        let redirected = async {
            let listener = CallbackListener::open(choice.redirect.clone()).await?;
            let started = offer.begin(choice, &listener.redirect()).await?;
            let state = started.state();
            let callback = listener.answer(&state);
            tokio::pin!(callback);
            let callback = tokio::select! {
                // The browser may return to IronCurtain before it is known whether the browser was opened.
                callback = &mut callback => callback?,
                is_open = open(started.page()) => match is_open {
                    true => callback.await?,
                    false => return Err(LogInError::NoBrowser(server.name.clone())),
                },
            };
            Ok((started, callback))
        };
        tokio::pin!(cancelled);
        let (started, callback) = tokio::select! {
            biased;
            () = &mut cancelled => return Err(LogInError::Cancelled),
            redirected = redirected => redirected?,
        };
        let finished = started.finish(callback).await;
        let is_cancelled = cancelled.now_or_never().is_some();
        let login = match finished {
            Err(_) if is_cancelled => return Err(LogInError::Cancelled),
            finished => finished?.with_id(&id),
        };
        let refusal =
            if is_cancelled { Some(LogInError::Cancelled) } else { check_entry(&home, &server).err() };
        if let Some(refusal) = refusal {
            revoke_unused(&logins, (&server.name, server.remote.as_ref()), &login).await;
            return Err(refusal);
        }
        Ok(NewLogin { server, login })
    }
}

/// Checks that the entry of a server was not changed or removed while the user was logging in.
fn check_entry(home: &Home, server: &Server) -> Result<(), LogInError> {
    let servers = Servers::load(home)?;
    let current = servers.find(Some(server.name.as_str())).and_then(|current| current.remote.as_ref());
    if current != server.remote.as_ref() {
        return Err(LoginError::Changed(server.name.clone()).into());
    }
    Ok(())
}

/// Returns the user's own client of the stored login to this server, or `None` if there is no such login for this URL or
/// the encrypted file is locked in this process. Asks the user to unlock the keyring, which the new login needs as well.
async fn stored_client(logins: &Logins, name: &str, url: &Url) -> Result<Option<ClientChoice>, SecretError> {
    let is_for_url = logins.record(name).is_some_and(|record| record.url == url.as_str());
    let (logins, name) = (logins.clone(), name.to_owned());
    let read = move || {
        logins.unlock_keyring()?;
        logins.stored_tokens(&name)
    };
    let tokens = match with_unlock_timeout(read).await {
        Err(SecretError::File(SecretFileError::Locked(_))) => None,
        tokens => tokens?.filter(|_| is_for_url),
    };
    Ok(tokens.and_then(|tokens| StoredLogin::parse(tokens.reveal())).and_then(|login| login.own_client()))
}
