//! Commands that log in to and out of a remote server.
//!
//! - The plan is stored here until the user confirms it, and is carried out exactly as shown.
//! - INVARIANT: no token, client secret or page address is sent to the page.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::login::{
    LogInError, LoginOptions, LoginPlan, NewLogin, RedirectAddress, open_in_browser,
};
use ironcurtain_config::Servers;
use ironcurtain_secrets::{Secret, SecretFileError};
use ironcurtain_server::process::{self, LogoutResult, revoke_unless_stored, store_login};
use ironcurtain_visible as visible;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Logins that have been planned or started in the window.
#[derive(Default)]
pub(super) struct WindowLogins(Mutex<LoginState>);

/// A late response from a server can replace the plan while the user is reading another one, so the confirmation contains
/// the number that was shown.
#[derive(Default)]
struct LoginState {
    /// Number of the latest plan.
    number: u32,
    /// Login that is waiting for the user's confirmation.
    plan: Option<LoginPlan>,
    /// Logins that are waiting for the browser, by number. Dropping a sender cancels the login.
    waiting: BTreeMap<u32, oneshot::Sender<()>>,
}

impl WindowLogins {
    fn lock(&self) -> MutexGuard<'_, LoginState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Planned login.
#[derive(Debug, Serialize)]
pub(super) struct PlannedLogin {
    number: u32,
    lines: Vec<String>,
    question: String,
}

pub(super) async fn plan_login(
    state: &AppState,
    server: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    redirect: Option<String>,
) -> Result<PlannedLogin, CommandError> {
    let trusted = trusted(state)?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let client_secret = given(client_secret).map(|text| Secret::parse(Secret::new(text).reveal()));
    let client_secret = client_secret.transpose().map_err(CommandError::malformed)?;
    let redirect = given(redirect)
        .map(|address| address.parse::<RedirectAddress>())
        .transpose()
        .map_err(CommandError::malformed)?;
    let options = LoginOptions { client_id: given(client_id), client_secret, redirect, scopes: None };
    let secrets = trusted.daemon.secrets();
    if secrets.file_is_locked().map_err(CommandError::refused)? == Some(true) {
        return Err(CommandError::refused(SecretFileError::Locked(secrets.path().to_owned())));
    }
    let plan = LoginPlan::discover(&trusted.home, &secrets, (&server, options)).await;
    let plan = plan.map_err(CommandError::refused)?;
    let (lines, question) = (plan.lines(), plan.question());
    let mut logins = state.logins.lock();
    logins.number = logins.number.wrapping_add(1);
    logins.plan = Some(plan);
    Ok(PlannedLogin { number: logins.number, lines, question })
}

/// Logs in. Returns `None` if the user cancelled the login.
pub(super) async fn log_in(state: &AppState, number: u32) -> Result<Option<String>, CommandError> {
    let secrets = trusted(state)?.daemon.secrets();
    let (plan, cancelled) = {
        let mut logins = state.logins.lock();
        let plan = if logins.number == number { logins.plan.take() } else { None };
        let plan = plan.ok_or_else(|| {
            CommandError::malformed("the reviewed login is no longer available; review it again")
        })?;
        let (cancel, cancelled) = oneshot::channel();
        logins.waiting.insert(number, cancel);
        (plan, cancelled)
    };
    // Nothing is sent: the login is cancelled when the sender is dropped.
    let performed = plan.perform(open_in_browser, async { drop(cancelled.await) }).await;
    let is_cancelled = state.logins.lock().waiting.remove(&number).is_none();
    let NewLogin { server, login } = match performed {
        Err(LogInError::Cancelled) => return Ok(None),
        performed => performed.map_err(CommandError::refused)?,
    };
    if is_cancelled {
        revoke_unless_stored(&secrets, (&server.name, server.remote.as_ref()), &login).await;
        return Ok(None);
    }
    let stored = store_login(&secrets, (&server.name, server.remote.as_ref()), login).await;
    stored.map_err(CommandError::refused)?;
    let name = visible::line(&server.name);
    Ok(Some(format!("You are logged in to {name}. Running sessions use the login from now on.")))
}

/// Cancels a login. Does nothing once the login is being stored.
pub(super) async fn cancel_login(state: &AppState, number: u32) -> Result<(), CommandError> {
    state.logins.lock().waiting.remove(&number);
    Ok(())
}

pub(super) async fn log_out(state: &AppState, server: String) -> Result<String, CommandError> {
    let name = visible::line(&server);
    let is_revoked = end_login(state, &server).await?.is_some_and(|ended| ended.is_revoked);
    let tokens = if is_revoked {
        "Its tokens were revoked, and deleted here."
    } else {
        "Its tokens were deleted here."
    };
    Ok(format!("You are logged out of {name}. {tokens}"))
}

/// Logs out of a server, if the user is logged in.
pub(super) async fn end_login(state: &AppState, server: &str) -> Result<Option<LogoutResult>, CommandError> {
    let trusted = trusted(state)?;
    let (home, name) = (trusted.home.clone(), server.to_owned());
    // An invalid entry prevents only the revocation.
    let entry =
        run_blocking(move || Servers::load(&home).map(|servers| servers.find(Some(name.as_str())).cloned()))
            .await;
    let remote = entry.ok().flatten().and_then(|entry| entry.remote);
    let ended = process::log_out(&trusted.daemon.secrets(), server, remote.as_ref()).await;
    ended.map_err(CommandError::refused)
}
