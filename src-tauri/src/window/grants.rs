//! Commands that revoke, restore, change and create grants.

use super::AppState;
use super::command_error::CommandError;
use super::file_picker::Picked;
use crate::backend::Trusted;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_consent::Lifetime;
use ironcurtain_daemon::{GrantChanges, GrantRequest, GrantRequestError, GrantTarget};
use ironcurtain_grants::StandingGrant;
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::PoisonError;

/// Maximum number of revoked grants that can be restored.
const UNDO: usize = 1000;

/// Result of revoking a grant.
#[derive(Debug, Serialize)]
pub(super) struct RevokedRow {
    grant: String,
    /// Time at which the revocation was verified, in milliseconds since the Unix epoch, or `None` if it was not
    /// verified.
    at_ms: Option<u64>,
    /// Number of servers restarted for the revocation.
    restarted: usize,
    note: Option<String>,
    problem: Option<String>,
}

/// Kind of access, as named by the page.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AccessWord {
    Read,
    Write,
    Delete,
}

/// Lifetime, as named by the page. A single call cannot be granted in advance.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LifetimeWord {
    Session,
    QuarterHour,
    Hour,
    Always,
}

/// Grant that the user creates in advance. Files and folders are chosen in a picker instead.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestedGrant {
    client: String,
    server: String,
    kind: GrantKind,
    /// Name of the host or the tool.
    what: String,
    access: Vec<AccessWord>,
    lifetime: LifetimeWord,
}

/// Kind of object that is granted.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GrantKind {
    File,
    Folder,
    Host,
    Tool,
}

/// Terms of a grant that replaces an existing one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedTerms {
    access: Option<Vec<AccessWord>>,
    lifetime: Option<LifetimeWord>,
    /// `true` to let the user pick a folder inside the granted one. The new grant is then limited to that folder.
    part: bool,
}

pub(super) async fn revoke_grants(
    state: &AppState,
    grants: Vec<String>,
) -> Result<Vec<RevokedRow>, CommandError> {
    // Sends all requests before waiting for replies. Each request denies access immediately, but the verification takes
    // longer.
    let asked = grants.into_iter().map(|grant| {
        let active = state.backend.trusted().and_then(|trusted| trusted.daemon.active_grant(&grant));
        let reply = state.backend.request(Request::Revoke { grant: grant.clone() });
        let reply = tauri::async_runtime::spawn(reply);
        (grant, active, reply)
    });
    let mut rows = Vec::new();
    for (grant, active, reply) in asked.collect::<Vec<_>>() {
        let reply = reply.await.map_err(CommandError::refused)?;
        rows.push(revoked_row(grant, reply));
        if let (Some(active), Some(RevokedRow { at_ms: Some(_), .. })) = (active, rows.last()) {
            remember(state, active);
        }
    }
    Ok(rows)
}

fn revoked_row(grant: String, reply: Reply) -> RevokedRow {
    if let Reply::Revoked { grant: done, restarted, unstored } = &reply
        && *done == grant
    {
        let (restarted, note) = (restarted.len(), unstored.clone());
        return RevokedRow { grant, at_ms: Some(now_ms()), restarted, note, problem: None };
    }
    let problem = Some(CommandError::of(reply).into_message());
    RevokedRow { grant, at_ms: None, restarted: 0, note: None, problem }
}

fn remember(state: &AppState, grant: StandingGrant) {
    let mut all = state.revoked.lock().unwrap_or_else(PoisonError::into_inner);
    let too_many = (all.len() + 1).saturating_sub(UNDO);
    all.drain(..too_many);
    all.push(grant);
}

pub(super) async fn restore_grant(state: &AppState, grant: String) -> Result<(), CommandError> {
    let trusted = trusted(state)?;
    let again = {
        let all = state.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|one| one.id == grant).cloned()
    };
    let again = again.ok_or_else(|| CommandError::malformed("this grant was not revoked in this window"))?;
    let daemon = trusted.daemon.clone();
    run_on_trusted(&trusted, async move { daemon.restore_grant(again).await }).await?;
    let mut all = state.revoked.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.id != grant);
    Ok(())
}

pub(super) async fn change_grant(
    state: &AppState,
    grant: String,
    terms: WantedTerms,
) -> Result<bool, CommandError> {
    let trusted = trusted(state)?;
    let active = trusted
        .daemon
        .active_grant(&grant)
        .ok_or_else(|| CommandError::refused(GrantRequestError::NoFileGrant))?;
    let part = match (terms.part, active.files()) {
        (true, Some(files)) => {
            let title = format!("Grant only a folder within {}", visible::path(files.path.as_str()));
            match state.pickers.pick(&title, Picked::Folder, Path::new(files.path.as_str())).await {
                Some(part) => Some(part),
                None => return Ok(false),
            }
        }
        (true, None) | (false, _) => None,
    };
    let terms = GrantChanges {
        access: terms.access.as_deref().map(access_set),
        lifetime: terms.lifetime.map(Lifetime::from),
        part,
    };
    let daemon = trusted.daemon.clone();
    run_on_trusted(&trusted, async move { daemon.change_grant(&grant, terms).await }).await?;
    Ok(true)
}

pub(super) async fn grant_beforehand(
    state: &AppState,
    gift: RequestedGrant,
) -> Result<Option<String>, CommandError> {
    let trusted = trusted(state)?;
    let picked = async |title: &str, kind: Picked| {
        let access = access_set(&gift.access);
        state.pickers.pick(title, kind, &state.home).await.map(|path| GrantTarget::Files { path, access })
    };
    let what = match gift.kind {
        GrantKind::File => picked("Grant a file", Picked::File).await,
        GrantKind::Folder => picked("Grant a folder and everything in it", Picked::Folder).await,
        GrantKind::Host => Some(GrantTarget::Host(gift.what)),
        GrantKind::Tool => Some(GrantTarget::Tool(gift.what)),
    };
    let Some(what) = what else { return Ok(None) };
    let gift =
        GrantRequest { client: gift.client, server: gift.server, what, lifetime: gift.lifetime.into() };
    let daemon = trusted.daemon.clone();
    let granted = run_on_trusted(&trusted, async move { daemon.grant(gift).await }).await?;
    Ok(Some(visible::path(&granted)))
}

/// Runs a grant operation on the trusted process's own threads.
async fn run_on_trusted<T: Send + 'static>(
    trusted: &Trusted,
    giving: impl Future<Output = Result<T, GrantRequestError>> + Send + 'static,
) -> Result<T, CommandError> {
    let given = trusted.runtime.spawn(giving).await.map_err(CommandError::refused)?;
    given.map_err(CommandError::refused)
}

/// Returns the trusted process, which must run in this program.
pub(super) fn trusted(state: &AppState) -> Result<Trusted, CommandError> {
    state.backend.trusted().ok_or_else(|| CommandError::malformed("this window is not connected to the app"))
}

fn access_set(words: &[AccessWord]) -> AccessSet {
    words.iter().fold(AccessSet::default(), |all, word| {
        all.with(match word {
            AccessWord::Read => Access::Read,
            AccessWord::Write => Access::Write,
            AccessWord::Delete => Access::Delete,
        })
    })
}

impl From<LifetimeWord> for Lifetime {
    fn from(word: LifetimeWord) -> Self {
        match word {
            LifetimeWord::Session => Self::Session,
            LifetimeWord::QuarterHour => Self::QuarterHour,
            LifetimeWord::Hour => Self::Hour,
            LifetimeWord::Always => Self::Always,
        }
    }
}
