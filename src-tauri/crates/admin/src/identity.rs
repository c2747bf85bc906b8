//! Applies the user's decision about a server name's grants, data, annotations and secrets after the name starts a
//! different program.
//!
//! - Only programs that the user runs can record a decision, by writing to the database. No request on the socket can.
//! - A decision applies only to the program that was shown. If the program has changed since, the user must decide
//!   again.
//! - Starting from scratch deletes nothing. Before anything is moved, a file records everything that is set aside.

mod set_aside;

use crate::file_edit::FileEditError;
use crate::servers_file::ServerChangeError;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{ConfigError, PolicySnapshot, Server, Servers, SnapshotError};
use ironcurtain_grants::{Binding, Bindings, IdentityDecision, StandingGrant, StoreError};
use ironcurtain_packages::Packages;
use ironcurtain_secrets::SecretError;
use ironcurtain_server_identity::{
    Digests, IdentityError, IdentitySuspension, ServerIdentity, StoredServerState,
};
use std::io;
use std::path::{Path, PathBuf};

/// Error from deciding about suspended state.
#[derive(Debug, thiserror::Error)]
pub enum IdentityChangeError {
    /// The stored identities or grants could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The policy or the annotations are invalid.
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),
    /// The server's program could not be identified.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The servers file could not be changed.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// Another file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// A folder could not be created.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The login could not be ended.
    #[error(transparent)]
    Login(#[from] SecretError),
    /// The data folder could not be moved.
    #[error("failed to move `{path}`: {source}")]
    Move {
        /// Path of the folder.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The file that records everything set aside is invalid.
    #[error("failed to read `{file}`: {source}; repair it, or move it away")]
    Parse {
        /// Path of the file.
        file: PathBuf,
        /// Parser error.
        source: serde_json::Error,
    },
    /// No state is suspended for this server name.
    #[error("nothing is suspended under the name `{0}`")]
    NothingSuspended(String),
    /// The user has already decided, or the program has changed again.
    #[error(
        "the server `{0}` has changed again, or this was already decided; nothing was changed; run the command again"
    )]
    Changed(String),
    /// The server still has grants, which must be revoked first.
    #[error("{count} grants of `{server}` are still in effect; revoke them first")]
    HasGrants {
        /// Name of the server.
        server: String,
        /// Number of remaining grants.
        count: usize,
    },
}

/// A server whose current program differs from the program for which the state under its name was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspendedServer {
    /// Name of the server.
    pub name: String,
    /// Difference between the two programs, in words.
    pub change: String,
    /// State that is suspended until the user decides.
    pub stored_state: StoredServerState,
    home: Home,
    owner: Option<String>,
    found: String,
}

/// Returns all servers with suspended state.
///
/// # Errors
/// Returns an [`IdentityChangeError`] if the configuration or the database cannot be read or written.
pub fn suspended(home: &Home) -> Result<Vec<SuspendedServer>, IdentityChangeError> {
    let all = Bindings::of(&home.database()).all()?;
    let all: Vec<Binding> = all.into_iter().filter(|binding| binding.found.is_some()).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let states = StoredStates::read(home)?;
    Ok(all.into_iter().filter_map(|binding| SuspendedServer::from_binding(home, &states, binding)).collect())
}

/// Returns the state that is stored under a server name.
///
/// # Errors
/// Returns an [`IdentityChangeError`] if the configuration or the database cannot be read or written.
pub fn stored_state(home: &Home, name: &str) -> Result<StoredServerState, IdentityChangeError> {
    Ok(StoredStates::read(home)?.stored_state(home, name))
}

/// Returns an error if the state under a configured server's name was stored for a different program.
///
/// # Errors
/// Returns [`IdentityError::Suspended`] for such a server, or another [`IdentityError`] if the program cannot be
/// identified.
pub fn verify(home: &Home, ours: &Path, server: &Server) -> Result<(), IdentityChangeError> {
    let Some(binding) = Bindings::of(&home.database()).get(&server.name)? else { return Ok(()) };
    let found = current_identity(home, ours, server)?;
    let Some(change) = found.change_from(binding.owner.as_deref()) else { return Ok(()) };
    let stored_state = stored_state(home, &server.name)?;
    if stored_state.is_empty() {
        return Ok(());
    }
    let suspension =
        IdentitySuspension { server: server.name.clone(), change, kept: stored_state.to_string() };
    Err(IdentityError::from(suspension).into())
}

/// Returns the current identity of a configured server.
///
/// # Errors
/// Returns an [`IdentityError`] if its program cannot be identified.
pub(crate) fn current_identity(
    home: &Home,
    ours: &Path,
    server: &Server,
) -> Result<ServerIdentity, IdentityError> {
    let package = Packages::in_home(home).verify(server).ok().flatten().map(|ready| ready.identity);
    Ok(ServerIdentity::of(server, package.as_ref(), ours, &Digests::default())?.identity)
}

/// Transfers a server name's state from the program that owns it to an approved update of that program.
pub(crate) fn replace_owner(
    home: &Home,
    from: &ServerIdentity,
    to: &ServerIdentity,
) -> Result<(), StoreError> {
    let bindings = Bindings::of(&home.database());
    let Some(owner) = bindings.get(&from.name)?.and_then(|binding| binding.owner) else { return Ok(()) };
    if ServerIdentity::read(&owner).is_some_and(|owner| owner.is_same(from)) {
        bindings.replace_owner(&from.name, &owner, &to.to_json())?;
    }
    Ok(())
}

impl SuspendedServer {
    /// Returns the suspended server with this name.
    ///
    /// # Errors
    /// Returns [`IdentityChangeError::NothingSuspended`] if the server has no suspended state.
    pub fn named(home: &Home, name: &str) -> Result<Self, IdentityChangeError> {
        let all = suspended(home)?.into_iter();
        let not_suspended = || IdentityChangeError::NothingSuspended(name.to_owned());
        all.into_iter().find(|one| one.name == name).ok_or_else(not_suspended)
    }

    fn from_binding(home: &Home, states: &StoredStates, binding: Binding) -> Option<Self> {
        let found = binding.found?;
        let change = ServerIdentity::read(&found)?.change_from(binding.owner.as_deref());
        Some(Self {
            stored_state: states.stored_state(home, &binding.server),
            change: change.unwrap_or_else(|| "it is the same program again".to_owned()),
            name: binding.server,
            home: home.clone(),
            owner: binding.owner,
            found,
        })
    }

    /// Returns the identity of the new program. A decision applies only while the program has this identity.
    #[must_use]
    pub fn current_identity(&self) -> &str {
        &self.found
    }

    /// Returns a description of the previous program, or `None` if it is unknown.
    #[must_use]
    pub fn previous_program(&self) -> Option<String> {
        Some(ServerIdentity::read(self.owner.as_deref()?)?.program.shown())
    }

    /// Returns a description of the program that the name now starts.
    #[must_use]
    pub fn current_program(&self) -> String {
        ServerIdentity::read(&self.found).map(|found| found.program.shown()).unwrap_or_default()
    }

    /// Lets the new program use the suspended state.
    ///
    /// # Errors
    /// Returns [`IdentityChangeError::Changed`] if the server has changed since its state was read.
    pub fn keep_state(&self) -> Result<(), IdentityChangeError> {
        self.decide(IdentityDecision::Keep)
    }

    /// Writes a file that lists everything that will be set aside and returns the file's path. The caller must then
    /// revoke the grants and call [`SuspendedServer::start_afresh`].
    ///
    /// # Errors
    /// Returns an [`IdentityChangeError`] if the configuration or the database cannot be read or written.
    pub fn write_inventory(&self) -> Result<PathBuf, IdentityChangeError> {
        set_aside::write_inventory(self)
    }

    /// Sets aside the annotations, the entry's secret references and the data folder. The server can then start without
    /// them.
    ///
    /// # Errors
    /// Returns [`IdentityChangeError::HasGrants`] while the server has grants. After any error, everything remains
    /// suspended.
    pub fn start_afresh(&self) -> Result<(), IdentityChangeError> {
        let is_for_server = |grant: &&StandingGrant| grant.subject.server == self.name;
        let count = StandingGrant::on_disk(&self.home.database())?.iter().filter(is_for_server).count();
        if count > 0 {
            return Err(IdentityChangeError::HasGrants { server: self.name.clone(), count });
        }
        set_aside::set_aside(self)?;
        self.decide(IdentityDecision::StartFresh)
    }

    fn decide(&self, decision: IdentityDecision) -> Result<(), IdentityChangeError> {
        match Bindings::of(&self.home.database()).decide(&self.name, &self.found, decision)? {
            true => Ok(()),
            false => Err(IdentityChangeError::Changed(self.name.clone())),
        }
    }
}

/// State stored under the names of all servers.
struct StoredStates {
    servers: Servers,
    snapshot: PolicySnapshot,
    grants: Vec<StandingGrant>,
}

impl StoredStates {
    fn read(home: &Home) -> Result<Self, IdentityChangeError> {
        let servers = Servers::load(home)?;
        let snapshot = PolicySnapshot::load(home, &servers)?;
        Ok(Self { snapshot, servers, grants: StandingGrant::on_disk(&home.database())? })
    }

    fn stored_state(&self, home: &Home, name: &str) -> StoredServerState {
        let entry = self.servers.find(Some(name));
        StoredServerState::of(home, (name, entry), &self.grants, &self.snapshot.annotations)
    }
}
