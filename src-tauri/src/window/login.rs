//! Commands that log in to and out of a remote server.
//!
//! - The plan is stored here until the user confirms it, and is carried out exactly as shown.
//! - INVARIANT: no token, client secret or page address is sent to the page.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::login::{LoginOptions, LoginPlan, RedirectAddress, open_in_browser};
use ironcurtain_config::Servers;
use ironcurtain_secrets::{Logins, Secret, with_unlock_timeout};
use ironcurtain_server::process::{self, LogoutResult};
use ironcurtain_visible as visible;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// Login that is waiting for the user's confirmation, and its number. A late response from a server can replace the
/// plan while the user is reading another one, so the confirmation contains the number that was shown.
#[derive(Default)]
pub(super) struct LoginDraft(Mutex<(u32, Option<LoginPlan>)>);

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
    let plan = LoginPlan::discover(&trusted.home, &secrets, (&server, options)).await;
    let plan = plan.map_err(CommandError::refused)?;
    let (lines, question) = (plan.lines(), plan.question());
    let mut draft = state.login.0.lock().unwrap_or_else(PoisonError::into_inner);
    *draft = (draft.0.wrapping_add(1), Some(plan));
    Ok(PlannedLogin { number: draft.0, lines, question })
}

pub(super) async fn log_in(state: &AppState, number: u32) -> Result<String, CommandError> {
    let plan = state.login.0.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = Some(plan).filter(|draft| draft.0 == number).and_then(|mut draft| draft.1.take());
    let plan = plan.ok_or_else(|| {
        CommandError::malformed("the reviewed login is no longer available; review it again")
    })?;
    let logins = Logins::of(&trusted(state)?.daemon.secrets());
    let mut login = plan.perform(open_in_browser).await.map_err(CommandError::refused)?;
    let replaced = login.replaced.take();
    let name = visible::line(&login.server);
    let stored = with_unlock_timeout(move || logins.save(&login.server, &login.record, &login.tokens)).await;
    stored.map_err(CommandError::refused)?;
    if let Some(replaced) = replaced {
        replaced.revoke().await;
    }
    Ok(format!("You are logged in to {name}. Running sessions use the login from now on."))
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
