//! Offers that a question gives the user, derived from the access that the call needs. Pure.
//!
//! - Ordered from the narrowest to the widest.
//! - A folder is offered only if [`GrantLimits::may_be_granted`] allows it: never `/`, the home directory, or a
//!   folder that contains or is inside a protected path.
//! - Permission to delete is never offered permanently, except as part of full access to a folder that a sandboxed run
//!   may change.

mod project;
mod request;
mod tool;

pub use tool::may_last;
pub(super) use tool::tool_offers;

use super::grantable::{Grantable, RequestedAccess, merged};
use super::{Consequence, Lifetime, Offer, Principal, Reach, TextPart};
use ironcurtain_grants::{GrantLimits, GrantSubject, Granted, StandingGrant};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::AccessSet;
use ironcurtain_visible as visible;
use project::{open_folder_offer, project_offers};
use std::time::Duration;

/// Label of the offer that allows only this call.
pub(super) const THIS_CALL: &str = "this exact call";

/// Maximum length of text from the agent within a sentence, in characters. The effect line shows the whole text.
const MAX_SENTENCE_LEN: usize = 200;

pub(super) const ALL_LIFETIMES: [Lifetime; 4] =
    [Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour, Lifetime::Always];

/// Lifetimes for an offer that also applies to calls with other values. Such an offer is never permanent.
pub(super) const LIMITED_LIFETIMES: [Lifetime; 3] =
    [Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour];

/// Returns the offers for a call from `client`. Set `only_once` if the call also needs approval for something other
/// than a path: the paths are then offered for this call only.
#[must_use]
pub fn offers(client: &str, grantable: &Grantable, only_once: bool, limits: GrantLimits<'_>) -> Vec<Offer> {
    let requested = &grantable.requested;
    let standing = ALL_LIFETIMES.into_iter().filter(|l| !(grantable.deletes() && *l == Lifetime::Always));
    let mut offers = vec![Offer {
        reach: Reach::Paths,
        label: paths_label(requested),
        sentence: paths_sentence(client, requested, limits.home),
        lifetimes: std::iter::once(Lifetime::Once)
            // A folder grant includes everything below it, so it is a separate offer.
            .chain(
                standing
                    .clone()
                    .filter(|_| !only_once && requested.iter().all(|w| w.target != PathKind::Folder)),
            )
            .collect(),
    }];
    let folders = grantable.folders();
    if !only_once && !folders.is_empty() && folders.iter().all(|(f, _)| limits.may_be_granted(f)) {
        let names: Vec<String> = folders.iter().map(|(f, _)| tilde(f, limits.home)).collect();
        let access = folders.iter().fold(AccessSet::default(), |all, (_, a)| union(all, *a));
        offers.push(Offer {
            reach: Reach::Folders,
            label: match names.as_slice() {
                [] | [_] => format!("everything in {}", join_words(&names)),
                all => format!("everything in these {} folders", all.len()),
            },
            sentence: format!(
                "{client} may {} everything in {} and below",
                verbs(access),
                join_words(&names)
            ),
            lifetimes: standing.collect(),
        });
    }
    if !only_once {
        offers.extend(open_folder_offer(client, grantable, limits));
        offers.extend(project_offers(client, grantable, limits));
    }
    offers
}

/// Removes lifetimes that are not available to this client and server, and offers that have no lifetime left. A new
/// server cannot get a permanent grant, because its behaviour is unknown. An unidentified client cannot get a grant
/// beyond its session, because any process could impersonate it. No grant can exceed `max`, the maximum lifetime of the
/// user's organization.
///
/// Decisions about a tool's definition are unchanged, because they grant nothing.
pub(super) fn limit(offers: &mut Vec<Offer>, principal: &Principal, max: Option<Duration>) {
    let hides = principal.client.view.exe.is_none();
    let is_available = |lifetime: &Lifetime| match lifetime {
        Lifetime::Once | Lifetime::Session => true,
        Lifetime::QuarterHour | Lifetime::Hour => {
            !hides && max.is_none_or(|max| lifetime.duration() <= Some(max))
        }
        Lifetime::Always => !hides && !principal.is_new && max.is_none(),
    };
    for offer in offers.iter_mut().filter(|offer| !offer.reach.is_decision()) {
        offer.lifetimes.retain(is_available);
    }
    offers.retain(|offer| !offer.lifetimes.is_empty());
}

/// Returns the sentence about the organization's maximum lifetime, or `None` if all offers are for one call.
pub(super) fn max_lifetime_sentence(offers: &[Offer], max: Duration) -> Option<String> {
    let is_standing = |lifetime: &Lifetime| *lifetime != Lifetime::Once;
    let is_limited =
        offers.iter().any(|offer| !offer.reach.is_decision() && offer.lifetimes.iter().any(is_standing));
    let minutes = match max.as_secs() / 60 {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    is_limited.then(|| format!("Your organization ends every permission after {minutes}."))
}

/// Creates a grant for each permission in `opened`. `name` returns a new grant id.
pub fn grants_of<E>(
    opened: Vec<Granted>,
    subject: &GrantSubject,
    (lifetime, now_ms): (Lifetime, u64),
    provenance: &str,
    mut name: impl FnMut() -> Result<String, E>,
) -> Result<Vec<StandingGrant>, E> {
    let session = subject.session.clone().filter(|_| lifetime == Lifetime::Session);
    let expires_ms =
        lifetime.duration().map(|l| now_ms.saturating_add(u64::try_from(l.as_millis()).unwrap_or(u64::MAX)));
    let grant = |what| {
        Ok(StandingGrant {
            id: name()?,
            subject: GrantSubject { session: session.clone(), ..subject.clone() },
            what,
            lifetime,
            expires_ms,
            created_ms: now_ms,
            last_used_ms: None,
            uses: 0,
            provenance: provenance.to_owned(),
        })
    };
    opened.into_iter().map(grant).collect()
}

/// Formats a path for the user, with the home directory as `~` and misleading characters escaped.
#[must_use]
pub(crate) fn tilde(path: &CanonicalPath, home: &CanonicalPath) -> String {
    visible::isolated_path(&tilde_path(path.as_str(), home))
}

fn tilde_path(path: &str, home: &CanonicalPath) -> String {
    let below = path.strip_prefix(home.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.map_or_else(|| path.to_owned(), |rest| format!("~{rest}"))
}

fn union(a: AccessSet, b: AccessSet) -> AccessSet {
    AccessSet { read: a.read || b.read, write: a.write || b.write, delete: a.delete || b.delete }
}

fn verbs(access: AccessSet) -> String {
    let words = [(access.read, "read"), (access.write, "write"), (access.delete, "delete")];
    join_words(&words.iter().filter(|(has, _)| *has).map(|(_, word)| (*word).to_owned()).collect::<Vec<_>>())
}

pub(super) fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn paths_label(requested: &[RequestedAccess]) -> String {
    match merged(requested.iter().map(|w| (w.path.clone(), w.access))).len() {
        0 => THIS_CALL.to_owned(),
        1 => match requested.first().map(|w| w.target) {
            Some(PathKind::Folder) => "this folder".to_owned(),
            Some(PathKind::Missing) => "this one path".to_owned(),
            Some(PathKind::File { .. } | PathKind::Special) | None => "this file".to_owned(),
        },
        n => count_phrase(n, requested),
    }
}

/// Returns a phrase for several paths, such as "these 3 files". The noun depends on the kinds of file system objects.
fn count_phrase(count: usize, requested: &[RequestedAccess]) -> String {
    let all = |is: fn(&PathKind) -> bool| requested.iter().all(|w| is(&w.target));
    let things = match () {
        () if all(|target| matches!(target, PathKind::File { .. })) => "files",
        () if all(|target| matches!(target, PathKind::Folder)) => "folders",
        () => "paths",
    };
    format!("these {count} {things}")
}

fn paths_sentence(client: &str, requested: &[RequestedAccess], home: &CanonicalPath) -> String {
    let paths = merged(requested.iter().map(|w| (w.path.clone(), w.access)));
    let access = paths.iter().fold(AccessSet::default(), |all, (_, a)| union(all, *a));
    let what = match paths.as_slice() {
        [] => return format!("{client} may make this call"),
        [(path, _)] => tilde(path, home),
        all => count_phrase(all.len(), requested),
    };
    format!("{client} may {} {what}", verbs(access))
}

/// Returns the sentence for the offer that allows one call: the call's worst effect and the number of its other
/// effects.
pub(super) fn call_sentence(client: &str, lines: &[Consequence], home: &CanonicalPath) -> String {
    let Some((worst, others)) = lines.split_first() else { return format!("{client} may make this call") };
    let piece = |piece: &TextPart| match piece {
        TextPart::Fixed(words) => (*words).to_owned(),
        TextPart::Path(path) => tilde_path(path, home),
        TextPart::Untrusted(text) => {
            visible::quoted(&visible::line(&visible::head_and_tail(text, MAX_SENTENCE_LEN)))
        }
    };
    let object: String = worst.object.iter().map(piece).collect();
    let others = match others.iter().filter(|other| !other.allowed).count() {
        0 => String::new(),
        1 => " and 1 other thing".to_owned(),
        n => format!(" and {n} other things"),
    };
    format!("{client} may {} {object}{others}", worst.verb.word())
}

/// Returns a sentence for each folder that the server gains access to if the call is allowed.
pub(super) fn opened_folders(requested: &[RequestedAccess], home: &CanonicalPath) -> Vec<String> {
    let beside = requested.iter().filter_map(|w| w.need.as_ref().filter(|need| need.path != w.path));
    let mut folders: Vec<String> = beside.map(|need| tilde(&need.path, home)).collect();
    folders.sort();
    folders.dedup();
    let sentence =
        |folder: String| format!("To do this, the server briefly gets access to everything in {folder}.");
    folders.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests;
