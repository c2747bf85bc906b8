//! Starts a server from its installed package, provided that the package has not changed since its installation.

use super::{
    PackageIdentity, PackageRecord, PackageRecordError, Packages, RequestError, RequestedPackage,
    RunnerCommand, Runtime, installed_pythons, system_python, tree,
};
use ironcurtain_config::{Sandbox, Server};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Server ready to start from its installed package.
#[derive(Debug)]
pub struct PackagedServer {
    /// Server entry with the package runner replaced by the installed program.
    pub server: Server,
    /// Package folder, which the server's sandbox must show read-only.
    pub folder: String,
    /// Identity of the package.
    pub identity: PackageIdentity,
    /// Lock that prevents removal of the package folder. Must be held until the server has exited.
    pub lock: FolderLock,
}

/// Shared lock on a package folder. The installer does not remove a locked folder.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

/// Reason a server cannot start from its package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// No package is installed for the server.
    #[error("its package `{package}` is not installed; run `ironcurtain servers install {server}`")]
    NotInstalled {
        /// Name of the server.
        server: String,
        /// Package that the server's entry requests.
        package: String,
    },
    /// The entry requests a different package than the installed one.
    #[error(
        "its entry requests the package `{wanted}`, but `{installed}` is installed; run `ironcurtain servers install {server}`"
    )]
    DifferentPackage {
        /// Name of the server.
        server: String,
        /// Package that the server's entry requests.
        wanted: String,
        /// Package that is installed.
        installed: String,
    },
    /// The entry's command line is not supported.
    #[error(
        "its package cannot be installed: {0}; install the server yourself, and set `command` to its program"
    )]
    UnsupportedCommand(RequestError),
    /// The installed package is unreadable or has changed.
    #[error(
        "its package `{package}` changed since it was installed: {problem}; check why, then reinstall it \
         with `ironcurtain servers install {server}`"
    )]
    Changed {
        /// Name of the server.
        server: String,
        /// Installed package.
        package: String,
        /// Description of the change.
        problem: String,
    },
}

/// Difference between an installed package and its record.
#[derive(Debug, thiserror::Error)]
enum PackageChange {
    /// The package's files or the system's Python cannot be read.
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
    /// Files in this folder changed.
    #[error("files in `{folder}` changed", folder = .0.display())]
    Files(PathBuf),
    /// The system's Python has changed, so the virtual environment may be broken.
    #[error("the system's Python changed from `{recorded}` to `{current}`", recorded = .recorded.display(), current = .current.display())]
    Python {
        /// Path of the Python that created the virtual environment.
        recorded: PathBuf,
        /// Path of the current Python.
        current: PathBuf,
    },
}

/// State of a server's package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageState {
    /// The server does not run from a package.
    NoPackage,
    /// The package is installed and unchanged.
    Installed {
        /// Installed version.
        version: String,
        /// SHA-256 hash of all files in the package's folder.
        hash: String,
    },
    /// The server cannot start from its package.
    NotReady(PackageError),
}

impl Packages {
    /// Verifies and locks a server's package. Returns `None` if the entry does not use a package runner.
    ///
    /// # Errors
    /// Returns a [`PackageError`] if the package is missing or has changed. The caller must then not start the server,
    /// unless the entry opts out of the sandbox and the package was never installed.
    pub fn verify(&self, server: &Server) -> Result<Option<PackagedServer>, PackageError> {
        let Some(command) = RunnerCommand::parse(server).map_err(PackageError::UnsupportedCommand)? else {
            return Ok(None);
        };
        let record = self.record_for(server, &command.requested)?;
        self.verify_record(server, &command, &record).map(Some)
    }

    /// Returns the state of a server's package without keeping its folder locked.
    #[must_use]
    pub fn state(&self, server: &Server) -> PackageState {
        let record = || self.record(&server.name).ok().flatten();
        match (self.verify(server), record()) {
            (Ok(None), _) => PackageState::NoPackage,
            (Ok(Some(_)), Some(PackageRecord { version, hash, .. })) => {
                PackageState::Installed { version, hash }
            }
            (Ok(Some(_)), None) => PackageState::NotReady(not_installed(server, &server.name)),
            (Err(problem), _) => PackageState::NotReady(problem),
        }
    }

    /// Verifies and locks the package that `record` describes.
    ///
    /// # Errors
    /// Returns [`PackageError::Changed`] if the folder differs from its record or cannot be read.
    pub fn verify_record(
        &self,
        server: &Server,
        command: &RunnerCommand,
        record: &PackageRecord,
    ) -> Result<PackagedServer, PackageError> {
        let changed = |problem: String| PackageError::Changed {
            server: server.name.clone(),
            package: record.package_spec(),
            problem,
        };
        let folder = self.folder(record);
        let lock =
            FolderLock::acquire(&folder).map_err(|e| changed(format!("`{}`: {e}", folder.display())))?;
        self.check(record, &folder).map_err(|change| changed(change.to_string()))?;
        let text = folder.to_str().ok_or_else(|| changed("its path is not UTF-8".to_owned()))?;
        let server = installed_entry(server, command, record, text);
        Ok(PackagedServer { server, folder: text.to_owned(), identity: record.identity(), lock })
    }

    fn record_for(&self, server: &Server, wanted: &RequestedPackage) -> Result<PackageRecord, PackageError> {
        let name = &server.name;
        let unreadable = |problem: PackageRecordError| PackageError::Changed {
            server: name.clone(),
            package: wanted.to_string(),
            problem: problem.to_string(),
        };
        let record = self.record(name).map_err(unreadable)?;
        let record = record.ok_or_else(|| not_installed(server, &wanted.to_string()))?;
        if record.requested != *wanted {
            let installed = record.package_spec();
            return Err(PackageError::DifferentPackage {
                server: name.clone(),
                wanted: wanted.to_string(),
                installed,
            });
        }
        Ok(record)
    }

    /// Compares the package with its record. Reads file contents only if the metadata differs.
    fn check(&self, record: &PackageRecord, folder: &Path) -> Result<(), PackageChange> {
        if tree::metadata_hash(folder)? != record.metadata_hash && tree::content_hash(folder)? != record.hash
        {
            return Err(PackageChange::Files(folder.to_path_buf()));
        }
        match &record.entry_point.runtime {
            Runtime::Node => Ok(()),
            Runtime::Python(recorded) => check_python(recorded),
        }
    }
}

impl FolderLock {
    fn acquire(folder: &Path) -> std::io::Result<Self> {
        let folder = File::open(folder)?;
        flock(&folder, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { _folder: folder })
    }
}

/// Checks that the Python that created the virtual environment is still installed.
fn check_python(recorded: &Path) -> Result<(), PackageChange> {
    let current = system_python()?;
    if current == recorded || installed_pythons().iter().any(|python| python == recorded) {
        return Ok(());
    }
    Err(PackageChange::Python { recorded: recorded.to_path_buf(), current })
}

fn not_installed(server: &Server, package: &str) -> PackageError {
    PackageError::NotInstalled { server: server.name.clone(), package: package.to_owned() }
}

/// Returns the entry with the package runner replaced by the installed program.
fn installed_entry(server: &Server, command: &RunnerCommand, record: &PackageRecord, folder: &str) -> Server {
    let mut server = server.clone();
    server.command = match &record.entry_point.runtime {
        Runtime::Node => "node".to_owned(),
        Runtime::Python(_) => format!("{folder}/venv/bin/python"),
    };
    server.args = vec![format!("{folder}/{}", record.entry_point.program)];
    server.args.extend(command.rest.iter().cloned());
    if let Runtime::Python(_) = record.entry_point.runtime {
        // Prevents Python from trying to write compiled modules into the read-only folder.
        server.env.entry("PYTHONDONTWRITEBYTECODE".to_owned()).or_insert_with(|| "1".to_owned());
    }
    if let Sandbox::Sandboxed(settings) = &mut server.sandbox {
        settings.filesystem.allow_read.push(folder.to_owned());
    }
    server
}
