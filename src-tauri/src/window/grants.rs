//! Commands about grants: taking back, giving again, changing, giving beforehand.

use super::AppState;
use super::command_error::CommandError;
use super::pick::Picked;
use crate::backend::Trusted;
use ironcurtain_consent::Lifetime;
use ironcurtain_daemon::{Gift, GiftOf, GiveError, GrantTerms};
use ironcurtain_grants::StandingGrant;
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of grants that were taken back and can be given again.
const UNDO: usize = 1000;

/// The fate of one grant that was to be taken back.
#[derive(Debug, Serialize)]
pub(super) struct TakenBackRow {
    grant: String,
    /// When it was proved to be gone.
    at_ms: Option<u64>,
    /// The number of servers that were restarted for it.
    restarted: usize,
    note: Option<String>,
    problem: Option<String>,
}

/// The words of the page for an access.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AccessWord {
    Read,
    Write,
    Delete,
}

/// The words of the page for a lifetime. For a single call nothing is granted here.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LifetimeWord {
    Session,
    QuarterHour,
    Hour,
    Always,
}

/// Who is to be given what. A file or folder is picked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedGift {
    client: String,
    server: String,
    kind: GiftKind,
    /// The host, or the tool.
    what: String,
    access: Vec<AccessWord>,
    lifetime: LifetimeWord,
}

/// The kind of what is given.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GiftKind {
    File,
    Folder,
    Host,
    Tool,
}

/// Other terms for a grant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedTerms {
    access: Option<Vec<AccessWord>>,
    lifetime: Option<LifetimeWord>,
    /// A folder within it is picked.
    part: bool,
}

pub(super) async fn take_back(
    state: &AppState,
    grants: Vec<String>,
) -> Result<Vec<TakenBackRow>, CommandError> {
    // Each is denied as soon as it is asked for; what takes long is the proof.
    let asked = grants.into_iter().map(|grant| {
        let held = state.backend.trusted().and_then(|trusted| trusted.daemon.holding(&grant));
        let reply = state.backend.request(Request::Revoke { grant: grant.clone() });
        let reply = tauri::async_runtime::spawn(reply);
        (grant, held, reply)
    });
    let mut told = Vec::new();
    for (grant, held, reply) in asked.collect::<Vec<_>>() {
        let reply = reply.await.map_err(CommandError::refused)?;
        told.push(taken_back(grant, reply));
        if let (Some(held), Some(TakenBackRow { at_ms: Some(_), .. })) = (held, told.last()) {
            remember(state, held);
        }
    }
    Ok(told)
}

fn taken_back(grant: String, reply: Reply) -> TakenBackRow {
    if let Reply::Revoked { grant: done, restarted, unstored } = &reply
        && *done == grant
    {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(now.as_millis()).ok();
        let (restarted, note) = (restarted.len(), unstored.clone());
        return TakenBackRow { grant, at_ms, restarted, note, problem: None };
    }
    let problem = Some(CommandError::of(reply).into_message());
    TakenBackRow { grant, at_ms: None, restarted: 0, note: None, problem }
}

fn remember(state: &AppState, grant: StandingGrant) {
    let mut all = state.taken_back.lock().unwrap_or_else(PoisonError::into_inner);
    let too_many = (all.len() + 1).saturating_sub(UNDO);
    all.drain(..too_many);
    all.push(grant);
}

pub(super) async fn give_again(state: &AppState, grant: String) -> Result<(), CommandError> {
    let trusted = trusted(state)?;
    let again = {
        let all = state.taken_back.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|one| one.id == grant).cloned()
    };
    let again = again.ok_or_else(|| CommandError::malformed("it was not taken back in this window"))?;
    let daemon = trusted.daemon.clone();
    given(&trusted, async move { daemon.give_again(again).await }).await?;
    let mut all = state.taken_back.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.id != grant);
    Ok(())
}

pub(super) async fn change_grant(
    state: &AppState,
    grant: String,
    terms: WantedTerms,
) -> Result<bool, CommandError> {
    let trusted = trusted(state)?;
    let held = trusted.daemon.holding(&grant).ok_or_else(|| CommandError::refused(GiveError::Gone))?;
    let part = match (terms.part, held.files()) {
        (true, Some(files)) => {
            let title = format!("Grant only a folder within {}", visible::path(files.path.as_str()));
            match state.pickers.pick(&title, Picked::Folder, Path::new(files.path.as_str())).await {
                Some(part) => Some(part),
                None => return Ok(false),
            }
        }
        (true, None) | (false, _) => None,
    };
    let terms = GrantTerms {
        access: terms.access.as_deref().map(access_set),
        lifetime: terms.lifetime.map(Lifetime::from),
        part,
    };
    let daemon = trusted.daemon.clone();
    given(&trusted, async move { daemon.change_grant(&grant, terms).await }).await?;
    Ok(true)
}

pub(super) async fn grant_beforehand(
    state: &AppState,
    gift: WantedGift,
) -> Result<Option<String>, CommandError> {
    let trusted = trusted(state)?;
    let picked = async |title: &str, kind: Picked| {
        let access = access_set(&gift.access);
        state.pickers.pick(title, kind, &state.home).await.map(|path| GiftOf::Files { path, access })
    };
    let what = match gift.kind {
        GiftKind::File => picked("Grant a file", Picked::File).await,
        GiftKind::Folder => picked("Grant a folder with all that is below it", Picked::Folder).await,
        GiftKind::Host => Some(GiftOf::Host(gift.what)),
        GiftKind::Tool => Some(GiftOf::Tool(gift.what)),
    };
    let Some(what) = what else { return Ok(None) };
    let gift = Gift { client: gift.client, server: gift.server, what, lifetime: gift.lifetime.into() };
    let daemon = trusted.daemon.clone();
    let granted = given(&trusted, async move { daemon.give(gift).await }).await?;
    Ok(Some(visible::path(&granted)))
}

/// Gives on the trusted process's own threads.
async fn given<T: Send + 'static>(
    trusted: &Trusted,
    giving: impl Future<Output = Result<T, GiveError>> + Send + 'static,
) -> Result<T, CommandError> {
    let given = trusted.runtime.spawn(giving).await.map_err(CommandError::refused)?;
    given.map_err(CommandError::refused)
}

/// The trusted process of this program.
pub(super) fn trusted(state: &AppState) -> Result<Trusted, CommandError> {
    state.backend.trusted().ok_or_else(|| CommandError::malformed("this window has no app behind it"))
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
