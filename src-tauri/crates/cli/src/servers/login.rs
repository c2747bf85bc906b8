//! `servers login` and `servers logout`: log in to a remote server through the browser, and log out.
//!
//! - Nothing is registered and no page is opened before the user confirms on a terminal. No option skips the
//!   confirmation.
//! - Tokens and client secrets are never printed.

use crate::screen::Screen;
use crate::secrets::{LoginStorage, NewSecret};
use crate::text_lines::TextLines;
use anyhow::bail;
use clap::Args;
use ironcurtain_admin::login::{LoginOptions, LoginPlan, RedirectAddress, open_in_browser};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::EndedLoginView;
use serde_json::json;
use std::process::ExitCode;

/// Options of `login`.
#[derive(Debug, Args)]
pub struct LoginArguments {
    /// Name of the server.
    name: String,
    /// Client id that you registered at the authorization server, for one that does not register programs itself. Its
    /// redirect address is `http://127.0.0.1/callback`, unless you pass another one with `--redirect`.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Redirect address that you registered for that client, if it needs a fixed port, such as
    /// `http://localhost:3118/callback`.
    #[arg(long, value_name = "ADDRESS", requires = "client_id")]
    redirect: Option<RedirectAddress>,
    /// Type the secret of that client; it is stored with the login.
    #[arg(long, requires = "client_id")]
    client_secret: bool,
    /// Scopes to request, separated by spaces, instead of those that the server names.
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    /// Print the address of the page instead of opening it.
    #[arg(long)]
    no_browser: bool,
}

impl LoginArguments {
    /// Returns the arguments for a login without options.
    pub fn for_server(name: &str) -> Self {
        let name = name.to_owned();
        Self { name, client_id: None, redirect: None, client_secret: false, scope: None, no_browser: false }
    }
}

/// Logs in to a server.
pub fn login(home: &Home, arguments: &LoginArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let name = arguments.name.as_str();
    if screen.is_json() || !screen.has_terminal() {
        bail!("a login needs your answer: run this in a terminal: ironcurtain servers login {name}");
    }
    home.prepare()?;
    let Some(storage) = LoginStorage::open(screen)? else {
        screen.note("Nothing was stored.")?;
        return Ok(ExitCode::FAILURE);
    };
    let client_secret = match arguments.client_secret {
        true => Some(NewSecret::line(&format!("Client secret for `{name}`"))?),
        false => None,
    };
    let scopes = arguments.scope.as_ref().map(|all| all.split_whitespace().map(str::to_owned).collect());
    let (client_id, redirect) = (arguments.client_id.clone(), arguments.redirect.clone());
    let options = LoginOptions { client_id, client_secret, redirect, scopes };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plan = runtime.block_on(LoginPlan::discover(home, storage.store(), (name, options)))?;
    let lines: TextLines = plan.lines().iter().collect();
    screen.show(&lines, &json!({}))?;
    if !screen.confirmed(&plan.question())? {
        screen.note("You are not logged in.")?;
        return Ok(ExitCode::FAILURE);
    }
    let opened = async |page: &url::Url| {
        let is_browser_open = !arguments.no_browser && open_in_browser(page).await;
        let heading = match is_browser_open {
            true => "If no page has opened, open this page in your browser:",
            false => "Open this page in your browser:",
        };
        let lines = [heading, page.as_str(), "Waiting for your browser, for at most five minutes ..."];
        lines.into_iter().all(|line| screen.note(line).is_ok())
    };
    let login = runtime.block_on(plan.perform(opened, std::future::pending()))?;
    let scopes = match login.login.scopes() {
        [] => String::new(),
        scopes => format!(" ({})", scopes.join(", ")),
    };
    let next = match storage.save(login)? {
        true => "Running sessions use the login from now on.",
        false => "Sessions can use the login once you unlock your secrets: ironcurtain secrets unlock",
    };
    screen.note(&format!("You are logged in to `{name}`{scopes}. {next}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Logs out of a server.
pub fn logout(home: &Home, name: &str, screen: Screen) -> anyhow::Result<ExitCode> {
    let logged_out = LoginStorage::log_out(home, name)?;
    let text = logout_text(name, logged_out.as_ref());
    let is_revoked = logged_out.as_ref().is_some_and(|logged_out| logged_out.is_revoked);
    let value = json!({ "loggedOut": logged_out.is_some(), "revoked": is_revoked });
    screen.show(&[text.as_str()].into_iter().collect(), &value)?;
    Ok(ExitCode::SUCCESS)
}

/// Describes the outcome of a logout for the user.
pub fn logout_text(name: &str, logged_out: Option<&EndedLoginView>) -> String {
    match logged_out {
        Some(EndedLoginView { is_revoked: true, .. }) => {
            format!("You are logged out of `{name}`. Its tokens were revoked, and deleted here.")
        }
        Some(EndedLoginView { issuer, .. }) => format!(
            "You are logged out of `{name}`, and its tokens were deleted here. To end the login there too, use your account at \
             {issuer}."
        ),
        None => format!("You were not logged in to `{name}`."),
    }
}
