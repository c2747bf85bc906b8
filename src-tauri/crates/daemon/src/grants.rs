//! Standing permissions: the truth that policy, roots and mounts are projections of.
//!
//! - One thread owns the database; everyone else reads the published [`GrantTable`] without waiting.
//! - A grant that has ended is not in the table: nobody has to look at a clock to judge.
//! - Permissions for one call or one connection are not grants: they live and die with it.

mod lifetime;
mod limits;
mod owner;
mod store;

pub use lifetime::Lifetime;
pub use limits::GrantLimits;
pub use store::StoreError;

use crate::mounts::Need;
use ironcurtain_audit::Entry;
use ironcurtain_egress::{Host, HostPort};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use store::Store;
use tokio::sync::{oneshot, watch};

/// A standing permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingGrant {
    /// Names it everywhere.
    pub id: String,
    /// Who may use it.
    pub subject: GrantSubject,
    /// The files or the host that it opens.
    pub what: Granted,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// When it ends by the clock, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    /// When it was given.
    pub created_ms: u64,
    /// When it last let something through.
    pub last_used_ms: Option<u64>,
    /// The number of calls and connections it let through.
    pub uses: u64,
    /// Its origin, in words.
    pub provenance: String,
}

/// The files or the host that a grant opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// Files, by path.
    Files(Files),
    /// One port of one host.
    Host(HostPort),
}

/// Files that are granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The path of the file, or of the folder.
    pub path: CanonicalPath,
    /// One file, or everything below.
    pub kind: GrantKind,
    /// The access that is granted.
    pub access: AccessSet,
}

impl Granted {
    /// Notes in an entry of the log what is opened.
    pub(crate) fn note_in(&self, entry: &mut Entry) {
        match self {
            Self::Files(files) => entry.paths = vec![files.path.as_str().to_owned()],
            Self::Host(target) => entry.about_host(&target.host, target.port),
        }
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => f.write_str(files.path.as_str()),
            Self::Host(target) => write!(f, "{target}"),
        }
    }
}

impl StandingGrant {
    /// The grants that outlive their session, as the database has them: for a look without the trusted process, whether
    /// it runs or not. Those that have ended by the clock are left out.
    ///
    /// # Errors
    /// [`StoreError`], when the database cannot be read. Without one, nothing is granted.
    pub fn on_disk(database: &Path) -> Result<Vec<Self>, StoreError> {
        let Some(store) = Store::open_to_read(database)? else { return Ok(Vec::new()) };
        let now = crate::clock::now_ms();
        let mut grants = store.load()?;
        grants.retain(|grant| grant.expires_ms.is_none_or(|at| at > now));
        Ok(grants)
    }

    /// The files it opens, if it does.
    #[must_use]
    pub fn files(&self) -> Option<&Files> {
        match &self.what {
            Granted::Files(files) => Some(files),
            Granted::Host(_) => None,
        }
    }

    /// The host it opens, if it does, as the proxy needs it.
    #[must_use]
    pub fn for_proxy(&self) -> Option<ironcurtain_egress::GrantedHost> {
        match &self.what {
            Granted::Files(_) => None,
            Granted::Host(target) => {
                Some(ironcurtain_egress::GrantedHost { id: self.id.clone(), target: target.clone() })
            }
        }
    }

    /// The host it opens, if it does, as judging needs it.
    #[must_use]
    pub fn for_gate(&self) -> Option<ironcurtain_policy::HostGrant> {
        let Granted::Host(target) = &self.what else { return None };
        let host = match &target.host {
            Host::Address(IpAddr::V6(v6)) => format!("[{v6}]"),
            host @ (Host::Name(_) | Host::Address(_)) => host.to_string(),
        };
        Some(ironcurtain_policy::HostGrant { id: self.id.clone(), host, port: target.port })
    }

    /// As judging needs it, if it opens files.
    #[must_use]
    pub fn for_judging(&self) -> Option<ironcurtain_policy::PathGrant> {
        let Files { path, kind, access } = self.files()?.clone();
        Some(ironcurtain_policy::PathGrant { id: self.id.clone(), path, kind, access })
    }

    /// Returns `true` if the mount that stands for it shows this as well.
    #[must_use]
    pub fn shows(&self, need: &Need) -> bool {
        self.files().is_some_and(|files| files.show(need))
    }
}

impl Files {
    fn show(&self, need: &Need) -> bool {
        let reaches = match self.kind {
            GrantKind::File => self.path == need.path,
            GrantKind::Tree => self.path.contains(&need.path),
        };
        let writable = self.access.write || self.access.delete;
        reaches && (writable || self.access.read) && (writable || !need.writable)
    }
}

/// Who a grant is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSubject {
    /// The client, by the key the kernel proved: its executable.
    pub client: String,
    /// Its name for people.
    pub client_name: String,
    /// The server.
    pub server: String,
    /// The one session it is for, if it ends with a session.
    pub session: Option<String>,
}

impl GrantSubject {
    /// Returns `true` if a session of `client` with `server` may use a grant of this subject.
    #[must_use]
    pub fn covers(&self, client: &str, server: &str, session: &str) -> bool {
        self.client == client && self.server == server && self.session.as_deref().is_none_or(|s| s == session)
    }
}

/// All live grants at one moment.
#[derive(Debug, Default)]
pub struct GrantTable {
    /// Grows with every change of what is granted.
    pub version: u64,
    /// In the order they were given.
    pub grants: Vec<StandingGrant>,
}

/// A handle to the grants.
#[derive(Debug, Clone)]
pub struct Grants {
    commands: mpsc::Sender<Command>,
    table: watch::Receiver<Arc<GrantTable>>,
}

/// A grant that has ended by the clock.
#[derive(Debug, PartialEq, Eq)]
pub struct Expired(pub StandingGrant);

pub(crate) enum Command {
    Add(Vec<StandingGrant>, oneshot::Sender<Result<u64, StoreError>>),
    Remove(String, oneshot::Sender<Result<Option<(StandingGrant, u64)>, StoreError>>),
    EndSession(String),
    Used(Vec<String>),
}

impl Grants {
    /// Opens the database and starts its owner. What expires is told through `expired`.
    ///
    /// # Errors
    /// [`StoreError`], when the database cannot be read.
    pub fn open(
        database: &Path,
        expired: tokio::sync::mpsc::UnboundedSender<Expired>,
    ) -> Result<Self, StoreError> {
        let (commands, inbox) = mpsc::channel();
        let table = owner::start(database, inbox, expired)?;
        Ok(Self { commands, table })
    }

    /// The grants as they are now.
    #[must_use]
    pub fn now(&self) -> Arc<GrantTable> {
        self.table.borrow().clone()
    }

    /// For waiting until they change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<GrantTable>> {
        self.table.clone()
    }

    /// Gives grants; the answer is the version of the table that has them.
    ///
    /// # Errors
    /// [`StoreError`]: none of them is given.
    pub async fn add(&self, grants: Vec<StandingGrant>) -> Result<u64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Add(grants, reply)).map_err(|_| StoreError::Ended)?;
        answer.await.map_err(|_| StoreError::Ended)?
    }

    /// Takes a grant away; the answer is the grant and the version of the table that lacks it, or nothing if
    /// there is none of that id.
    ///
    /// # Errors
    /// [`StoreError`]: the grant could not be removed from the database. It no longer applies all the same.
    pub async fn remove(&self, id: &str) -> Result<Option<(StandingGrant, u64)>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Remove(id.to_owned(), reply)).map_err(|_| StoreError::Ended)?;
        answer.await.map_err(|_| StoreError::Ended)?
    }

    /// Drops the grants of a session that ended.
    pub fn end_session(&self, session: &str) {
        // Without an owner there are no grants.
        let _ = self.commands.send(Command::EndSession(session.to_owned()));
    }

    /// Notes that grants let something through.
    pub fn used(&self, ids: &[String]) {
        if !ids.is_empty() {
            // As above.
            let _ = self.commands.send(Command::Used(ids.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ms;

    fn grant(id: &str, lifetime: Lifetime, session: Option<&str>) -> StandingGrant {
        StandingGrant {
            id: id.into(),
            subject: GrantSubject {
                client: "/usr/bin/claude".into(),
                client_name: "claude".into(),
                server: "filesystem".into(),
                session: session.map(Into::into),
            },
            what: Granted::Files(Files {
                path: CanonicalPath::assume_canonical("/home/u/docs").unwrap(),
                kind: GrantKind::Tree,
                access: AccessSet { read: true, write: true, delete: false },
            }),
            lifetime,
            expires_ms: None,
            created_ms: 5,
            last_used_ms: None,
            uses: 0,
            provenance: "question q1".into(),
        }
    }

    fn open(dir: &Path) -> (Grants, tokio::sync::mpsc::UnboundedReceiver<Expired>) {
        let (send, receive) = tokio::sync::mpsc::unbounded_channel();
        (Grants::open(&dir.join("state.db"), send).unwrap(), receive)
    }

    #[tokio::test]
    async fn standing_grants_survive_a_restart_and_session_grants_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let always = grant("a", Lifetime::Always, None);
        {
            let (grants, _expired) = open(dir.path());
            let session = grant("s", Lifetime::Session, Some("one"));
            grants.add(vec![always.clone(), session.clone()]).await.unwrap();
            assert_eq!(grants.now().grants, [always.clone(), session]);
        }
        let (grants, _expired) = open(dir.path());
        assert_eq!(grants.now().grants, std::slice::from_ref(&always));
        let (removed, version) = grants.remove("a").await.unwrap().unwrap();
        assert_eq!((removed, version), (always, grants.now().version));
        assert!(grants.remove("a").await.unwrap().is_none());
        drop(grants);
        assert!(open(dir.path()).0.now().grants.is_empty());
    }

    #[tokio::test]
    async fn a_host_is_granted_like_files_are() {
        let dir = tempfile::tempdir().unwrap();
        let target = HostPort::parse("docs.example.org:443", None).unwrap();
        let host =
            StandingGrant { what: Granted::Host(target.clone()), ..grant("h", Lifetime::Always, None) };
        open(dir.path()).0.add(vec![host.clone()]).await.unwrap();
        let grants = open(dir.path()).0;
        assert_eq!(grants.now().grants, std::slice::from_ref(&host));
        assert_eq!(host.for_proxy(), Some(ironcurtain_egress::GrantedHost { id: "h".into(), target }));
        let gate = host.for_gate().map(|gate| (gate.host, gate.port));
        assert_eq!(gate, Some(("docs.example.org".to_owned(), 443)));
        assert_eq!((host.for_judging(), host.what.to_string()), (None, "docs.example.org:443".to_owned()));
        assert!(grants.remove("h").await.unwrap().is_some());
        assert!(open(dir.path()).0.now().grants.is_empty());
    }

    #[tokio::test]
    async fn a_session_takes_its_grants_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (grants, _expired) = open(dir.path());
        let other = grant("b", Lifetime::Session, Some("two"));
        grants.add(vec![grant("a", Lifetime::Session, Some("one")), other.clone()]).await.unwrap();
        let mut watch = grants.watch();
        watch.mark_unchanged();
        grants.end_session("one");
        watch.changed().await.unwrap();
        assert_eq!(grants.now().grants, [other]);
    }

    #[tokio::test]
    async fn an_expired_grant_leaves_the_table_by_itself_and_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let short = |id| StandingGrant { expires_ms: Some(now_ms() + 30), ..grant(id, Lifetime::Hour, None) };
        let (grants, mut expired) = open(dir.path());
        let given = short("x");
        grants.add(vec![given.clone()]).await.unwrap();
        assert_eq!(expired.recv().await, Some(Expired(given)));
        assert!(grants.now().grants.is_empty());
        grants.add(vec![StandingGrant { expires_ms: Some(1), ..short("past") }]).await.unwrap();
        drop(grants);
        assert!(open(dir.path()).0.now().grants.is_empty());
    }

    #[tokio::test]
    async fn what_is_on_disk_can_be_read_beside_the_owner_and_without_one() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        assert_eq!(StandingGrant::on_disk(&database).unwrap(), []);
        assert!(!database.exists());
        let always = grant("a", Lifetime::Always, None);
        let ends = |id, at| StandingGrant { expires_ms: Some(at), ..grant(id, Lifetime::Hour, None) };
        let later = ends("later", now_ms() + 3_600_000);
        let (grants, _expired) = open(dir.path());
        grants.add(vec![always.clone(), later.clone(), ends("past", 1)]).await.unwrap();
        grants.add(vec![grant("s", Lifetime::Session, Some("one"))]).await.unwrap();
        assert_eq!(StandingGrant::on_disk(&database).unwrap(), [always.clone(), later.clone()]);
        drop(grants);
        assert_eq!(StandingGrant::on_disk(&database).unwrap(), [always, later]);
        let other = dir.path().join("other.db");
        std::fs::write(&other, "no database").unwrap();
        assert!(matches!(StandingGrant::on_disk(&other), Err(StoreError::Database { .. })));
    }

    #[tokio::test]
    async fn uses_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (grants, _expired) = open(dir.path());
        grants.add(vec![grant("a", Lifetime::Always, None)]).await.unwrap();
        grants.used(&["a".into()]);
        grants.used(&["a".into()]);
        let mut watch = grants.watch();
        watch.wait_for(|t| t.grants.first().is_some_and(|g| g.uses == 2)).await.unwrap();
        assert!(grants.now().grants.first().unwrap().last_used_ms.is_some());
    }
}
