//! Deciding about what is kept under the name of a server that is another program now.
//!
//! - The user's own programs decide, in the database: nothing on the socket can.
//! - A decision applies to the program that was shown. If the program changed since, the user has to decide again.
//! - Starting afresh deletes nothing. What is put aside is noted in a file before anything is moved.

mod put_aside;

use crate::file_edit::FileEditError;
use crate::servers_file::ServerChangeError;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{ConfigError, Server, Servers};
use ironcurtain_daemon::packages::Packages;
use ironcurtain_daemon::server_identity::{
    Digests, IdentityError, IdentitySuspension, KeptUnderName, ServerIdentity,
};
use ironcurtain_daemon::{PolicySnapshot, SnapshotError};
use ironcurtain_grants::Binding;
use ironcurtain_grants::Bindings;
use ironcurtain_grants::IdentityDecision;
use ironcurtain_grants::StandingGrant;
use ironcurtain_grants::StoreError;
use std::io;
use std::path::{Path, PathBuf};

/// Why nothing is decided.
#[derive(Debug, thiserror::Error)]
pub enum IdentityChangeError {
    /// The stored identities or grants cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration is refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The policy or the annotations are refused.
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),
    /// The program cannot be identified.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The file of servers is not changed.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// Another file is not changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// A folder cannot be made.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The data folder cannot be moved.
    #[error("failed to move `{path}`: {source}")]
    Move {
        /// The folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The note of what was put aside before cannot be read.
    #[error("failed to read `{file}`: {source}; repair it, or move it away")]
    Note {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// Nothing is suspended.
    #[error("nothing is suspended under the name `{0}`")]
    NothingSuspended(String),
    /// Somebody decided already, or the program changed again.
    #[error(
        "the server `{0}` changed again, or somebody decided already; nothing was changed; run the command again"
    )]
    Changed(String),
    /// Grants are left.
    #[error("{count} of the grants of `{server}` are still in force; revoke them first")]
    GrantsLeft {
        /// The server.
        server: String,
        /// Their number.
        count: usize,
    },
}

/// A server that is another program than what is kept under its name belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspendedServer {
    /// Its name.
    pub name: String,
    /// The difference, in words.
    pub change: String,
    /// The things that are suspended.
    pub kept: KeptUnderName,
    home: Home,
    owner: Option<String>,
    found: String,
}

/// All servers of which something is suspended.
///
/// # Errors
/// [`IdentityChangeError`].
pub fn suspended(home: &Home) -> Result<Vec<SuspendedServer>, IdentityChangeError> {
    let all = Bindings::of(&home.database()).all()?;
    let all: Vec<Binding> = all.into_iter().filter(|binding| binding.found.is_some()).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let under = UnderNames::read(home)?;
    Ok(all.into_iter().filter_map(|binding| SuspendedServer::of(home, &under, binding)).collect())
}

/// Returns everything that is kept under a name.
///
/// # Errors
/// [`IdentityChangeError`].
pub fn kept(home: &Home, name: &str) -> Result<KeptUnderName, IdentityChangeError> {
    Ok(UnderNames::read(home)?.kept(home, name))
}

/// Refuses a configured server that is another program than what is kept under its name belongs to.
///
/// # Errors
/// [`IdentityError::Suspended`] for such a server, and when its program cannot be identified.
pub fn verify(home: &Home, ours: &Path, server: &Server) -> Result<(), IdentityChangeError> {
    let Some(binding) = Bindings::of(&home.database()).get(&server.name)? else { return Ok(()) };
    let found = now(home, ours, server)?;
    let Some(change) = found.change_from(binding.owner.as_deref()) else { return Ok(()) };
    let kept = kept(home, &server.name)?;
    if kept.is_empty() {
        return Ok(());
    }
    let suspension = IdentitySuspension { server: server.name.clone(), change, kept: kept.to_string() };
    Err(IdentityError::from(suspension).into())
}

/// The identity of a configured server as it is now.
///
/// # Errors
/// [`IdentityError`], when its program cannot be identified.
pub(crate) fn now(home: &Home, ours: &Path, server: &Server) -> Result<ServerIdentity, IdentityError> {
    let package = Packages::of(home).ready(server).ok().flatten().map(|ready| ready.identity);
    Ok(ServerIdentity::of(server, package.as_ref(), ours, &Digests::default())?.identity)
}

/// Gives what is kept under a name to an approved update of its owner.
pub(crate) fn carry_over(home: &Home, from: &ServerIdentity, to: &ServerIdentity) -> Result<(), StoreError> {
    let bindings = Bindings::of(&home.database());
    let Some(owner) = bindings.get(&from.name)?.and_then(|binding| binding.owner) else { return Ok(()) };
    if ServerIdentity::read(&owner).is_some_and(|owner| owner.is(from)) {
        bindings.carry_over(&from.name, &owner, &to.stored())?;
    }
    Ok(())
}

impl SuspendedServer {
    /// The server of this name.
    ///
    /// # Errors
    /// [`IdentityChangeError::NothingSuspended`].
    pub fn named(home: &Home, name: &str) -> Result<Self, IdentityChangeError> {
        let all = suspended(home)?.into_iter();
        let nothing = || IdentityChangeError::NothingSuspended(name.to_owned());
        all.into_iter().find(|one| one.name == name).ok_or_else(nothing)
    }

    fn of(home: &Home, under: &UnderNames, binding: Binding) -> Option<Self> {
        let found = binding.found?;
        let change = ServerIdentity::read(&found)?.change_from(binding.owner.as_deref());
        Some(Self {
            kept: under.kept(home, &binding.server),
            change: change.unwrap_or_else(|| "it is the same program again".to_owned()),
            name: binding.server,
            home: home.clone(),
            owner: binding.owner,
            found,
        })
    }

    /// The identity of the new program, by which a decision names what was shown.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// The program that had the name before. Nothing, where that is not known.
    #[must_use]
    pub fn before(&self) -> Option<String> {
        Some(ServerIdentity::read(self.owner.as_deref()?)?.program.shown())
    }

    /// The program that has the name now.
    #[must_use]
    pub fn now(&self) -> String {
        ServerIdentity::read(&self.found).map(|found| found.program.shown()).unwrap_or_default()
    }

    /// Gives all of it to the new program.
    ///
    /// # Errors
    /// [`IdentityChangeError::Changed`].
    pub fn keep(&self) -> Result<(), IdentityChangeError> {
        self.decide(IdentityDecision::Keep)
    }

    /// Notes what is put aside; the file. Then the grants are to be revoked, and [`SuspendedServer::start_afresh`] does the rest.
    ///
    /// # Errors
    /// [`IdentityChangeError`].
    pub fn note_put_aside(&self) -> Result<PathBuf, IdentityChangeError> {
        put_aside::note(self)
    }

    /// Puts aside the annotations, the secrets that the entry names and the data folder, and lets the server start without them.
    ///
    /// # Errors
    /// [`IdentityChangeError::GrantsLeft`] while grants are in force. Until all is done, all stays suspended.
    pub fn start_afresh(&self) -> Result<(), IdentityChangeError> {
        let is_its = |grant: &&StandingGrant| grant.subject.server == self.name;
        let count = StandingGrant::on_disk(&self.home.database())?.iter().filter(is_its).count();
        if count > 0 {
            return Err(IdentityChangeError::GrantsLeft { server: self.name.clone(), count });
        }
        put_aside::put_aside(self)?;
        self.decide(IdentityDecision::StartAfresh)
    }

    fn decide(&self, decision: IdentityDecision) -> Result<(), IdentityChangeError> {
        match Bindings::of(&self.home.database()).decide(&self.name, &self.found, decision)? {
            true => Ok(()),
            false => Err(IdentityChangeError::Changed(self.name.clone())),
        }
    }
}

/// Everything that is kept under names.
struct UnderNames {
    servers: Servers,
    snapshot: PolicySnapshot,
    grants: Vec<StandingGrant>,
}

impl UnderNames {
    fn read(home: &Home) -> Result<Self, IdentityChangeError> {
        let servers = Servers::load(home)?;
        let snapshot = PolicySnapshot::load(home, &servers)?;
        Ok(Self { snapshot, servers, grants: StandingGrant::on_disk(&home.database())? })
    }

    fn kept(&self, home: &Home, name: &str) -> KeptUnderName {
        let entry = self.servers.find(Some(name));
        KeptUnderName::of(home, (name, entry), &self.grants, &self.snapshot.annotations)
    }
}
