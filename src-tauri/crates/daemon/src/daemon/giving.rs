//! Grants by the person's own hand, in the window of the trusted process itself: given beforehand, changed, given again.
//!
//! - Reached only by whoever holds the [`Daemon`]: over the socket nothing is given.
//! - INVARIANT: nothing is given here that no question would offer: nothing protected, nothing around the home, no writing
//!   of a file that runs later, and nothing that removes for always.
//! - INVARIANT: a grant is on record before it is given. What is changed is given anew first, and then the old one is taken back.

mod beyond_files;
mod give_error;

pub use give_error::GiveError;

use super::Daemon;
use crate::control::{self, Asker};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_autostart::runs_later;
use ironcurtain_consent::Lifetime;
use ironcurtain_grants::{Files, GrantSubject, Granted, StandingGrant};
use ironcurtain_paths::{PathKind, Resolver, random_name};
use ironcurtain_policy::{AccessSet, GrantKind};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The origin of what is given beforehand without a picker, in words.
const BEFOREHAND: &str = "you granted it beforehand";

/// A client that the kernel proved at some time, to which something can be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvedClient {
    /// Its executable.
    pub key: String,
    /// Its name, for people.
    pub name: String,
    /// The servers that it uses, or holds grants with.
    pub servers: Vec<String>,
    /// The servers that it has live sessions with.
    pub live: Vec<String>,
    /// The tools of its servers that can be given as they are ([`GiftOf::Tool`]), by server.
    pub tools: BTreeMap<String, Vec<String>>,
}

/// Something that is given beforehand to one client with one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gift {
    /// The client's executable.
    pub client: String,
    /// The server.
    pub server: String,
    /// The thing itself.
    pub what: GiftOf,
    /// The lifetime; for that of the session, each live one with this server gets it.
    pub lifetime: Lifetime,
}

/// A thing that can be given beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GiftOf {
    /// A file or folder that the person picked.
    Files {
        /// The path that was picked.
        path: PathBuf,
        /// The access to it.
        access: AccessSet,
    },
    /// A host, as the person wrote it; port 443 where none is named.
    Host(String),
    /// A tool of the server's, of which no argument names a thing of the person's.
    Tool(String),
}

/// Other terms for a grant. What is not named stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantTerms {
    /// Less access.
    pub access: Option<AccessSet>,
    /// Another lifetime, from now on.
    pub lifetime: Option<Lifetime>,
    /// A part of the folder, in its place.
    pub part: Option<PathBuf>,
}

impl Daemon {
    /// The clients that something can be given to: those that are connected, and those that hold something.
    #[must_use]
    pub fn known_clients(&self) -> Vec<ProvedClient> {
        let mut known: BTreeMap<String, ProvedClient> = BTreeMap::new();
        let mut note = |subject: &GrantSubject, is_live: bool| {
            // What hides its executable could be anything, and so could what hides it the next time.
            if !subject.client.starts_with('/') {
                return;
            }
            let client = known.entry(subject.client.clone()).or_insert_with(|| ProvedClient {
                key: subject.client.clone(),
                name: visible::line(&subject.client_name),
                servers: Vec::new(),
                live: Vec::new(),
                tools: BTreeMap::new(),
            });
            for (list, counts) in [(&mut client.servers, true), (&mut client.live, is_live)] {
                if counts && !list.contains(&subject.server) {
                    list.push(subject.server.clone());
                }
            }
        };
        self.0.live().iter().for_each(|session| note(&session.principal.subject(), true));
        self.0.services.grants.now().grants.iter().for_each(|grant| note(&grant.subject, false));
        for client in known.values_mut() {
            client.tools =
                client.servers.iter().map(|server| (server.clone(), self.givable_tools(server))).collect();
        }
        known.into_values().collect()
    }

    /// The grant of this id, if it holds.
    #[must_use]
    pub fn holding(&self, id: &str) -> Option<StandingGrant> {
        self.0.services.grants.listed().into_iter().find(|grant| grant.id == id)
    }

    /// Gives what the person chose; the answer is what was granted, in canonical form.
    ///
    /// # Errors
    /// [`GiveError`]: nothing is given.
    pub async fn give(&self, gift: Gift) -> Result<String, GiveError> {
        let known = self.known_clients().into_iter().find(|known| known.key == gift.client);
        let known = known.ok_or_else(|| GiveError::UnknownClient(visible::line(&gift.client)))?;
        let (what, provenance) = match &gift.what {
            GiftOf::Files { path, access } => {
                (Granted::Files(self.files(path, *access)?), "you picked it in the window")
            }
            GiftOf::Host(host) => (self.host(&gift.server, host)?, BEFOREHAND),
            GiftOf::Tool(tool) => (self.tool(&gift.server, tool, gift.lifetime)?, BEFOREHAND),
        };
        let subject = |session| GrantSubject {
            client: known.key.clone(),
            client_name: known.name.clone(),
            server: gift.server.clone(),
            session,
        };
        let subjects = match gift.lifetime {
            Lifetime::Session => self.live_subjects(&gift.client, &gift.server),
            Lifetime::Once => return Err(GiveError::NoSession),
            Lifetime::QuarterHour | Lifetime::Hour | Lifetime::Always => vec![subject(None)],
        };
        if subjects.is_empty() {
            return Err(GiveError::NoSession);
        }
        let told = what.to_string();
        let grants = subjects
            .into_iter()
            .map(|subject| new_grant(what.clone(), subject, gift.lifetime, provenance.to_owned()));
        self.hand_out(grants.collect::<Result<_, _>>()?).await?;
        Ok(told)
    }

    /// Gives again what was taken back, on the terms that it had.
    ///
    /// # Errors
    /// [`GiveError`]: nothing is given.
    pub async fn give_again(&self, grant: StandingGrant) -> Result<(), GiveError> {
        let subject = &grant.subject;
        let is_over = grant.expires_ms.is_some_and(|end| end <= now_ms());
        let is_live = |session: &String| self.0.live().iter().any(|live| live.id == *session);
        if is_over || !subject.session.as_ref().is_none_or(is_live) {
            return Err(GiveError::NoSession);
        }
        if let Granted::Files(files) = &grant.what {
            // What is there now is what the person means.
            let now = self.files(Path::new(files.path.as_str()), files.access)?;
            if now != *files {
                return Err(GiveError::Gone);
            }
        }
        let provenance = "you took it back and granted it again".to_owned();
        let again = new_grant(grant.what.clone(), grant.subject.clone(), grant.lifetime, provenance)?;
        self.hand_out(vec![StandingGrant { expires_ms: grant.expires_ms, ..again }]).await
    }

    /// Puts a grant on other terms in the place of one.
    ///
    /// # Errors
    /// [`GiveError`]: nothing changed, but for [`GiveError::OldOneStays`].
    pub async fn change_grant(&self, id: &str, terms: GrantTerms) -> Result<(), GiveError> {
        let old = self.holding(id).ok_or(GiveError::Gone)?;
        let had = old.files().ok_or(GiveError::Gone)?.clone();
        let access = terms.access.unwrap_or(had.access);
        let files = match &terms.part {
            None => Files { access, ..had.clone() },
            Some(part) => self.files(part, access)?,
        };
        let is_within =
            files.path == had.path || (had.kind == GrantKind::Tree && had.path.contains(&files.path));
        if !is_within || !is_part_of(access, had.access) {
            return Err(GiveError::Wider);
        }
        if access == AccessSet::default() {
            return Err(GiveError::NoAccess);
        }
        let lifetime = terms.lifetime.unwrap_or(old.lifetime);
        if lifetime == Lifetime::Once || (lifetime == Lifetime::Session && old.subject.session.is_none()) {
            return Err(GiveError::NoSession);
        }
        let session = old.subject.session.clone().filter(|_| lifetime == Lifetime::Session);
        let subject = GrantSubject { session, ..old.subject.clone() };
        let provenance = format!("you changed it ({})", old.provenance);
        let mut new = new_grant(Granted::Files(files), subject, lifetime, provenance)?;
        if terms.lifetime.is_none() {
            new.expires_ms = old.expires_ms;
        }
        self.hand_out(vec![new]).await?;
        let reply = control::answer(&self.0, Request::Revoke { grant: id.to_owned() }, Asker::Own).await;
        if let Reply::Revoked { .. } = reply {
            return Ok(());
        }
        let failed = if let Reply::Failed { message, .. } = reply { Some(message) } else { None };
        Err(GiveError::OldOneStays(failed.unwrap_or_else(|| "nothing says so".to_owned())))
    }

    fn live_subjects(&self, client: &str, server: &str) -> Vec<GrantSubject> {
        let subjects = self.0.live().into_iter().map(|session| session.principal.subject());
        subjects.filter(|subject| subject.client == client && subject.server == server).collect()
    }

    /// The file or folder at a path that was picked, if it may be granted.
    fn files(&self, picked: &Path, access: AccessSet) -> Result<Files, GiveError> {
        if access == AccessSet::default() {
            return Err(GiveError::NoAccess);
        }
        let snapshot = self.0.services.snapshot();
        let raw = picked.to_str().ok_or(GiveError::NotUtf8)?;
        let shown = visible::path(raw);
        let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
        let found =
            resolver.resolve(raw).map_err(|problem| GiveError::Path { path: shown.clone(), problem })?;
        let kind = match found.target {
            PathKind::File { .. } => GrantKind::File,
            PathKind::Folder => GrantKind::Tree,
            PathKind::Missing | PathKind::Special => return Err(GiveError::NoFile(shown)),
        };
        if !snapshot.limits().may_be_granted(&found.path) {
            return Err(GiveError::Limits(visible::path(found.path.as_str())));
        }
        if access.write && runs_later(&found.path, &snapshot.home) {
            return Err(GiveError::RunsLater(visible::path(found.path.as_str())));
        }
        Ok(Files { path: found.path, kind, access })
    }

    /// Puts grants on record and gives them.
    async fn hand_out(&self, grants: Vec<StandingGrant>) -> Result<(), GiveError> {
        let removes_for_always = |grant: &StandingGrant| {
            grant.lifetime == Lifetime::Always && grant.files().is_some_and(|files| files.access.delete)
        };
        if grants.iter().any(removes_for_always) {
            return Err(GiveError::RemovesForAlways);
        }
        let gifts = grants.into_iter().map(|grant| {
            let entry = entry_of(&grant);
            (grant, entry)
        });
        self.0.services.grants.give(gifts.collect()).await?;
        self.0.services.changed();
        Ok(())
    }
}

/// A grant that begins now.
fn new_grant(
    what: Granted,
    subject: GrantSubject,
    lifetime: Lifetime,
    provenance: String,
) -> Result<StandingGrant, GiveError> {
    let created_ms = now_ms();
    let length = lifetime.length().map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    Ok(StandingGrant {
        id: random_name()?,
        subject,
        what,
        lifetime,
        expires_ms: length.map(|length| created_ms.saturating_add(length)),
        created_ms,
        last_used_ms: None,
        uses: 0,
        provenance,
    })
}

/// The entry that puts a grant on record.
fn entry_of(grant: &StandingGrant) -> Entry {
    let words = grant.lifetime.words();
    let mut entry = Entry::new(Event::Grant, format!("{}, {words}", grant.provenance));
    entry.grant_id = Some(grant.id.clone());
    entry.client = Some(grant.subject.client_name.clone());
    entry.server_name = Some(grant.subject.server.clone());
    entry.session.clone_from(&grant.subject.session);
    grant.what.note_in(&mut entry);
    entry
}

fn is_part_of(less: AccessSet, all: AccessSet) -> bool {
    [(less.read, all.read), (less.write, all.write), (less.delete, all.delete)]
        .iter()
        .all(|(wanted, has)| *has || !wanted)
}
