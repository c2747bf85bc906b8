//! Starting a server from its package, if that is still what was installed.

use super::{
    PackageIdentity, PackageRecord, PackageRecordError, Packages, RequestError, RequestedPackage,
    RunnerCommand, Runtime, system_python, tree,
};
use ironcurtain_config::{Sandbox, Server};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A server that is started from an installed package.
#[derive(Debug)]
pub struct PackagedServer {
    /// Its entry, with the installed program in the place of the package runner.
    pub server: Server,
    /// The folder it must see.
    pub folder: String,
    /// The marks that it is known by.
    pub identity: PackageIdentity,
    /// Keeps the folder there.
    pub lock: FolderLock,
}

/// Keeps a package's folder from being removed.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

/// Why a server cannot be started from a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// Nobody installed it.
    #[error("its package `{package}` is to be installed first: `ironcurtain servers install {server}`")]
    NotInstalled {
        /// The server.
        server: String,
        /// The package that its entry names.
        package: String,
    },
    /// Another one is installed.
    #[error(
        "its entry names the package `{wanted}`, and `{installed}` is installed: `ironcurtain servers install {server}`"
    )]
    Other {
        /// The server.
        server: String,
        /// The package that its entry names.
        wanted: String,
        /// The package that is installed.
        installed: String,
    },
    /// Its entry is not understood.
    #[error("its package cannot be installed: {0}; install the server yourself and name its files")]
    NotUnderstood(RequestError),
    /// The files are not those that were installed.
    #[error(
        "its package `{package}` is not what was installed any more: {problem}; look at what happened, then: `ironcurtain servers install {server}`"
    )]
    Changed {
        /// The server.
        server: String,
        /// The package.
        package: String,
        /// The change that was found.
        problem: String,
    },
}

/// Why a package is not what was installed.
#[derive(Debug, thiserror::Error)]
enum PackageChange {
    /// Its files, or the system's Python, cannot be looked at.
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
    /// Its files are others.
    #[error("something in `{folder}` was changed", folder = .0.display())]
    Files(PathBuf),
    /// The system's Python is another one.
    #[error("the system's Python was `{then}` and is `{now}` now", then = .then.display(), now = .now.display())]
    Python {
        /// The one that it was installed for.
        then: PathBuf,
        /// The one that is there.
        now: PathBuf,
    },
}

/// The state of a server's package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageState {
    /// It comes from none.
    NoPackage,
    /// This version is installed.
    Installed {
        /// The version.
        version: String,
        /// Its hash.
        hash: String,
    },
    /// It cannot be started.
    NotReady(PackageError),
}

impl Packages {
    /// The installed program of a server; nothing when its entry names no package runner.
    ///
    /// # Errors
    /// [`PackageError`]: it must not be started, but for one whose entry opted out of the sandbox and was never installed.
    pub fn ready(&self, server: &Server) -> Result<Option<PackagedServer>, PackageError> {
        let Some(command) = RunnerCommand::of(server).map_err(PackageError::NotUnderstood)? else {
            return Ok(None);
        };
        let record = self.recorded_for(server, &command.requested)?;
        self.ready_with(server, &command, &record).map(Some)
    }

    /// The state of a server's package.
    #[must_use]
    pub fn state(&self, server: &Server) -> PackageState {
        let record = || self.record(&server.name).ok().flatten();
        match (self.ready(server), record()) {
            (Ok(None), _) => PackageState::NoPackage,
            (Ok(Some(_)), Some(PackageRecord { version, hash, .. })) => {
                PackageState::Installed { version, hash }
            }
            (Ok(Some(_)), None) => PackageState::NotReady(not_installed(server, &server.name)),
            (Err(problem), _) => PackageState::NotReady(problem),
        }
    }

    /// The installed program of a server, by a record.
    ///
    /// # Errors
    /// [`PackageError::Changed`].
    pub fn ready_with(
        &self,
        server: &Server,
        command: &RunnerCommand,
        record: &PackageRecord,
    ) -> Result<PackagedServer, PackageError> {
        let changed = |problem: String| PackageError::Changed {
            server: server.name.clone(),
            package: record.spelled(),
            problem,
        };
        let folder = self.folder(record);
        let lock = FolderLock::on(&folder).map_err(|e| changed(format!("`{}`: {e}", folder.display())))?;
        self.check(record, &folder).map_err(|change| changed(change.to_string()))?;
        let text = folder.to_str().ok_or_else(|| changed("its path is not UTF-8".to_owned()))?;
        let server = started(server, command, record, text);
        Ok(PackagedServer { server, folder: text.to_owned(), identity: record.identity(), lock })
    }

    fn recorded_for(
        &self,
        server: &Server,
        wanted: &RequestedPackage,
    ) -> Result<PackageRecord, PackageError> {
        let name = &server.name;
        let unreadable = |problem: PackageRecordError| PackageError::Changed {
            server: name.clone(),
            package: wanted.to_string(),
            problem: problem.to_string(),
        };
        let record = self.record(name).map_err(unreadable)?;
        let record = record.ok_or_else(|| not_installed(server, &wanted.to_string()))?;
        if record.requested != *wanted {
            let installed = record.spelled();
            return Err(PackageError::Other { server: name.clone(), wanted: wanted.to_string(), installed });
        }
        Ok(record)
    }

    /// Cheap as long as nothing was touched; everything is read when something was.
    fn check(&self, record: &PackageRecord, folder: &Path) -> Result<(), PackageChange> {
        if tree::stamp(folder)? != record.stamp && tree::hash(folder)? != record.hash {
            return Err(PackageChange::Files(folder.to_path_buf()));
        }
        match &record.entry_point.runtime {
            Runtime::Node => Ok(()),
            Runtime::Python(then) => is_still(then),
        }
    }
}

impl FolderLock {
    fn on(folder: &Path) -> std::io::Result<Self> {
        let folder = File::open(folder)?;
        flock(&folder, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { _folder: folder })
    }
}

/// A virtual environment is of one Python, and of no other.
fn is_still(then: &Path) -> Result<(), PackageChange> {
    let now = system_python()?;
    if now == then {
        return Ok(());
    }
    Err(PackageChange::Python { then: then.to_path_buf(), now })
}

fn not_installed(server: &Server, package: &str) -> PackageError {
    PackageError::NotInstalled { server: server.name.clone(), package: package.to_owned() }
}

/// The entry with what was installed in the place of the package runner.
fn started(server: &Server, command: &RunnerCommand, record: &PackageRecord, folder: &str) -> Server {
    let mut server = server.clone();
    server.command = match &record.entry_point.runtime {
        Runtime::Node => "node".to_owned(),
        Runtime::Python(_) => format!("{folder}/venv/bin/python"),
    };
    server.args = vec![format!("{folder}/{}", record.entry_point.program)];
    server.args.extend(command.rest.iter().cloned());
    if let Runtime::Python(_) = record.entry_point.runtime {
        // Nothing is written beside the modules, where they could be.
        server.env.entry("PYTHONDONTWRITEBYTECODE".to_owned()).or_insert_with(|| "1".to_owned());
    }
    if let Sandbox::Sandboxed(settings) = &mut server.sandbox {
        settings.filesystem.allow_read.push(folder.to_owned());
    }
    server
}
