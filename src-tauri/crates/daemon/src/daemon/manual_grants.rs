//! Grants that the user creates, changes or restores in the window.
//!
//! - Creating a grant requires a [`Daemon`] handle. Requests over the socket cannot create grants.
//! - INVARIANT: grants only access that a question could offer. This excludes protected paths, folders that contain the
//!   home directory, write access to autostart files, and permanent permission to delete.
//! - INVARIANT: records a grant before it takes effect. A change creates the new grant before it revokes the old one.

mod error;
mod hosts_and_tools;

pub use error::GrantRequestError;

use super::Daemon;
use crate::control::{self, Requester};
use ironcurtain_audit::Event;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_autostart::is_autostart_file;
use ironcurtain_consent::Lifetime;
use ironcurtain_grants::{Files, GrantSubject, Granted, StandingGrant};
use ironcurtain_judging::JudgingContext;
use ironcurtain_paths::{PathKind, Resolver, random_name};
use ironcurtain_policy::{AccessSet, GrantKind};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Provenance recorded for a grant that was not created with a file picker.
const GRANTED_IN_ADVANCE: &str = "you granted it beforehand";

/// Client that was identified by the kernel and can therefore receive grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedClient {
    /// Path of the client's executable.
    pub key: String,
    /// Name for display.
    pub name: String,
    /// Servers that the client is connected to or has grants for.
    pub servers: Vec<String>,
    /// Servers that the client has active sessions with.
    pub live: Vec<String>,
    /// Tools that can be granted as a whole ([`GrantTarget::Tool`]), keyed by server name.
    pub tools: BTreeMap<String, Vec<String>>,
}

/// Request to create a grant for one client and one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    /// Path of the client's executable.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// File, folder, host or tool to grant.
    pub what: GrantTarget,
    /// Lifetime of the grant. [`Lifetime::Session`] creates one grant per active session with this server.
    pub lifetime: Lifetime,
}

/// File, folder, host or tool that the user grants in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantTarget {
    /// File or folder that the user picked.
    Files {
        /// Path that the user picked.
        path: PathBuf,
        /// Access to grant.
        access: AccessSet,
    },
    /// Host as typed by the user. The default port is 443.
    Host(String),
    /// Name of a tool whose arguments are not judged.
    Tool(String),
}

/// Changes to a grant. A `None` field keeps its current value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantChanges {
    /// New access, which must not exceed the current access.
    pub access: Option<AccessSet>,
    /// New lifetime, which starts now.
    pub lifetime: Option<Lifetime>,
    /// Path inside the granted folder to which the grant is narrowed.
    pub part: Option<PathBuf>,
}

impl Daemon {
    /// Returns the clients that can receive grants: clients that are connected or already have a grant.
    #[must_use]
    pub fn known_clients(&self) -> Vec<VerifiedClient> {
        let mut known: BTreeMap<String, VerifiedClient> = BTreeMap::new();
        let mut add = |subject: &GrantSubject, is_live: bool| {
            // A client without a known executable could not be recognized on its next connection.
            if !subject.client.starts_with('/') {
                return;
            }
            let client = known.entry(subject.client.clone()).or_insert_with(|| VerifiedClient {
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
        self.0.sessions().iter().for_each(|session| add(&session.principal.subject(), true));
        self.0.services.grants.now().grants.iter().for_each(|grant| add(&grant.subject, false));
        for client in known.values_mut() {
            client.tools =
                client.servers.iter().map(|server| (server.clone(), self.grantable_tools(server))).collect();
        }
        known.into_values().collect()
    }

    /// Returns the active grant with this id, or `None`.
    #[must_use]
    pub fn active_grant(&self, id: &str) -> Option<StandingGrant> {
        self.0.services.grants.for_display().into_iter().find(|grant| grant.id == id)
    }

    /// Creates a grant and returns its path, host or tool in canonical form.
    ///
    /// # Errors
    /// Returns [`GrantRequestError`] if the request is invalid. In that case, nothing is granted.
    pub async fn grant(&self, request: GrantRequest) -> Result<String, GrantRequestError> {
        let known = self.known_clients().into_iter().find(|known| known.key == request.client);
        let known = known.ok_or_else(|| GrantRequestError::UnknownClient(visible::line(&request.client)))?;
        let (what, provenance) = match &request.what {
            GrantTarget::Files { path, access } => {
                (Granted::Files(self.files(&request.server, path, *access)?), "you picked it in the window")
            }
            GrantTarget::Host(host) => (self.host(&request.server, host)?, GRANTED_IN_ADVANCE),
            GrantTarget::Tool(tool) => {
                (self.tool(&request.server, tool, request.lifetime)?, GRANTED_IN_ADVANCE)
            }
        };
        let subject = |session| GrantSubject {
            client: known.key.clone(),
            client_name: known.name.clone(),
            server: request.server.clone(),
            session,
        };
        let subjects = match request.lifetime {
            Lifetime::Session => self.live_subjects(&request.client, &request.server),
            Lifetime::Once => return Err(GrantRequestError::NoSession),
            Lifetime::QuarterHour | Lifetime::Hour | Lifetime::Always => vec![subject(None)],
        };
        if subjects.is_empty() {
            return Err(GrantRequestError::NoSession);
        }
        let object = what.to_string();
        let grants = subjects
            .into_iter()
            .map(|subject| new_grant(what.clone(), subject, request.lifetime, provenance.to_owned()));
        self.create(grants.collect::<Result<_, _>>()?).await?;
        Ok(object)
    }

    /// Restores a revoked grant with its original access, lifetime and subject.
    ///
    /// # Errors
    /// Returns [`GrantRequestError`] if the grant would no longer be valid. In that case, nothing is granted.
    pub async fn restore_grant(&self, grant: StandingGrant) -> Result<(), GrantRequestError> {
        let subject = &grant.subject;
        let is_expired = grant.expires_ms.is_some_and(|end| end <= now_ms());
        let is_live = |session: &String| self.0.sessions().iter().any(|live| live.id == *session);
        if is_expired || !subject.session.as_ref().is_none_or(is_live) {
            return Err(GrantRequestError::NoSession);
        }
        if let Granted::Files(files) = &grant.what {
            // Refuses a grant whose path now refers to a different file.
            let now = self.files(&subject.server, Path::new(files.path.as_str()), files.access)?;
            if now != *files {
                return Err(GrantRequestError::NoFileGrant);
            }
        }
        let provenance = "you revoked it and granted it again".to_owned();
        let restored = new_grant(grant.what.clone(), grant.subject.clone(), grant.lifetime, provenance)?;
        self.create(vec![StandingGrant { expires_ms: grant.expires_ms, ..restored }]).await
    }

    /// Replaces a grant with a new one that has the given terms.
    ///
    /// # Errors
    /// Returns [`GrantRequestError`] if the change fails. The old grant then remains unchanged. After
    /// [`GrantRequestError::OldGrantRemains`], the new grant is active too.
    pub async fn change_grant(&self, id: &str, changes: GrantChanges) -> Result<(), GrantRequestError> {
        let old = self.active_grant(id).ok_or(GrantRequestError::NoFileGrant)?;
        let old_files = old.files().ok_or(GrantRequestError::NoFileGrant)?.clone();
        let access = changes.access.unwrap_or(old_files.access);
        let files = match &changes.part {
            None => Files { access, ..old_files.clone() },
            Some(part) => self.files(&old.subject.server, part, access)?,
        };
        let is_within = files.path == old_files.path
            || (old_files.kind == GrantKind::Tree && old_files.path.contains(&files.path));
        if !is_within || !is_subset(access, old_files.access) {
            return Err(GrantRequestError::ExceedsGrant);
        }
        if access == AccessSet::default() {
            return Err(GrantRequestError::NoAccess);
        }
        let lifetime = changes.lifetime.unwrap_or(old.lifetime);
        if lifetime == Lifetime::Once || (lifetime == Lifetime::Session && old.subject.session.is_none()) {
            return Err(GrantRequestError::NoSession);
        }
        let session = old.subject.session.clone().filter(|_| lifetime == Lifetime::Session);
        let subject = GrantSubject { session, ..old.subject.clone() };
        let provenance = format!("you changed it ({})", old.provenance);
        let mut new = new_grant(Granted::Files(files), subject, lifetime, provenance)?;
        if changes.lifetime.is_none() {
            new.expires_ms = old.expires_ms;
        }
        self.create(vec![new]).await?;
        let reply = control::answer(&self.0, Request::Revoke { grant: id.to_owned() }, Requester::Own).await;
        if let Reply::Revoked { .. } = reply {
            return Ok(());
        }
        let failed = if let Reply::Failed { message, .. } = reply { Some(message) } else { None };
        Err(GrantRequestError::OldGrantRemains(failed.unwrap_or_else(|| "the reason is unknown".to_owned())))
    }

    fn live_subjects(&self, client: &str, server: &str) -> Vec<GrantSubject> {
        let subjects = self.0.sessions().into_iter().map(|session| session.principal.subject());
        subjects.filter(|subject| subject.client == client && subject.server == server).collect()
    }

    /// Resolves a picked path and checks that it may be granted to the server.
    fn files(&self, server: &str, picked: &Path, access: AccessSet) -> Result<Files, GrantRequestError> {
        if access == AccessSet::default() {
            return Err(GrantRequestError::NoAccess);
        }
        let snapshot = self.0.services.snapshot();
        let raw = picked.to_str().ok_or(GrantRequestError::NotUtf8)?;
        let shown = visible::path(raw);
        let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
        let found = resolver
            .resolve(raw)
            .map_err(|problem| GrantRequestError::Path { path: shown.clone(), problem })?;
        let kind = match found.target {
            PathKind::File { .. } => GrantKind::File,
            PathKind::Folder => GrantKind::Tree,
            PathKind::Missing | PathKind::Special => return Err(GrantRequestError::NotFileOrFolder(shown)),
        };
        if !snapshot.limits().may_be_granted(&found.path) {
            return Err(GrantRequestError::Protected(visible::path(found.path.as_str())));
        }
        let (home, settings) = (&self.0.services.home, self.0.reloader.settings());
        if JudgingContext::denied_by_entry(home, &settings.servers, &snapshot, server, None)
            .covers(&found.path)
        {
            let path = visible::path(found.path.as_str());
            return Err(GrantRequestError::Unreadable { server: visible::line(server), path });
        }
        if access.write && is_autostart_file(&found.path, &snapshot.home) {
            return Err(GrantRequestError::AutostartFile(visible::path(found.path.as_str())));
        }
        Ok(Files { path: found.path, kind, access })
    }

    /// Records the grants in the audit log, then adds them.
    async fn create(&self, grants: Vec<StandingGrant>) -> Result<(), GrantRequestError> {
        let is_permanent_delete = |grant: &StandingGrant| {
            grant.lifetime == Lifetime::Always && grant.files().is_some_and(|files| files.access.delete)
        };
        if grants.iter().any(is_permanent_delete) {
            return Err(GrantRequestError::PermanentDelete);
        }
        let recorded = grants.into_iter().map(|grant| {
            let summary = format!("{}, {}", grant.provenance, grant.lifetime.label());
            let entry = grant.entry(Event::Grant, summary);
            (grant, entry)
        });
        self.0.services.grants.create(recorded.collect()).await?;
        self.0.services.changed();
        Ok(())
    }
}

/// Creates a grant that starts now.
fn new_grant(
    what: Granted,
    subject: GrantSubject,
    lifetime: Lifetime,
    provenance: String,
) -> Result<StandingGrant, GrantRequestError> {
    let created_ms = now_ms();
    let length = lifetime.duration().map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
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

fn is_subset(subset: AccessSet, all: AccessSet) -> bool {
    [(subset.read, all.read), (subset.write, all.write), (subset.delete, all.delete)]
        .iter()
        .all(|(wanted, has)| *has || !wanted)
}
