//! What a server is started from, and whether that is still what was installed.

use super::record::{Record, Runtime};
use super::{Asked, Installs, Wanted, pypi, tree};
use crate::config::{Sandbox, Server};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A server that is started from an installed package.
#[derive(Debug)]
pub struct Ready {
    /// Its entry, with what is started in the place of the package runner.
    pub server: Server,
    /// The folder it must see.
    pub folder: String,
    /// Keeps the folder there.
    pub lease: Lease,
}

/// Keeps a package's folder from being removed.
#[derive(Debug)]
pub struct Lease {
    _folder: File,
}

/// Why a server cannot be started from a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// Nobody installed it.
    #[error("its package `{package}` is to be installed first: `ironcurtain servers install {server}`")]
    NotInstalled {
        /// The server.
        server: String,
        /// What its entry names.
        package: String,
    },
    /// Another one is installed.
    #[error(
        "its entry names the package `{wanted}`, and `{installed}` is installed: `ironcurtain servers install {server}`"
    )]
    Other {
        /// The server.
        server: String,
        /// What its entry names.
        wanted: String,
        /// What is there.
        installed: String,
    },
    /// Its entry is not understood.
    #[error("its package cannot be installed: {0}; install the server yourself and name its files")]
    NotUnderstood(String),
    /// What is there is not what was installed.
    #[error(
        "its package `{package}` is not what was installed any more: {problem}; look at what happened, then: `ironcurtain servers install {server}`"
    )]
    Changed {
        /// The server.
        server: String,
        /// The package.
        package: String,
        /// What changed.
        problem: String,
    },
}

/// How it stands with a server's package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
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
    NotReady(NotReady),
}

impl Installs {
    /// What a server is started from; nothing when its entry names no package runner.
    ///
    /// # Errors
    /// [`NotReady`]: it must not be started, but for one whose entry opted out of the sandbox and was never installed.
    pub fn ready(&self, server: &Server) -> Result<Option<Ready>, NotReady> {
        let Some(asked) = Asked::of(server).map_err(NotReady::NotUnderstood)? else { return Ok(None) };
        let record = self.recorded_for(server, &asked.wanted)?;
        self.ready_with(server, &asked, &record).map(Some)
    }

    /// How it stands with a server's package.
    #[must_use]
    pub fn state(&self, server: &Server) -> State {
        let record = || self.record(&server.name).ok().flatten();
        match (self.ready(server), record()) {
            (Ok(None), _) => State::NoPackage,
            (Ok(Some(_)), Some(Record { version, hash, .. })) => State::Installed { version, hash },
            (Ok(Some(_)), None) => State::NotReady(not_installed(server, &server.name)),
            (Err(problem), _) => State::NotReady(problem),
        }
    }

    /// What a server is started from by a record.
    pub(super) fn ready_with(
        &self,
        server: &Server,
        asked: &Asked,
        record: &Record,
    ) -> Result<Ready, NotReady> {
        let changed = |problem: String| NotReady::Changed {
            server: server.name.clone(),
            package: record.wanted.spelled(Some(&record.version)),
            problem,
        };
        let folder = self.folder(record);
        let lease = Lease::on(&folder).map_err(|e| changed(format!("`{}`: {e}", folder.display())))?;
        self.check(record, &folder).map_err(changed)?;
        let text = folder.to_str().ok_or_else(|| changed("its path is not UTF-8".to_owned()))?;
        Ok(Ready { server: started(server, asked, record, text), folder: text.to_owned(), lease })
    }

    fn recorded_for(&self, server: &Server, wanted: &Wanted) -> Result<Record, NotReady> {
        let name = &server.name;
        let unreadable =
            |problem| NotReady::Changed { server: name.clone(), package: wanted.to_string(), problem };
        let record = self.record(name).map_err(unreadable)?;
        let record = record.ok_or_else(|| not_installed(server, &wanted.to_string()))?;
        if record.wanted != *wanted {
            let installed = record.wanted.spelled(Some(&record.version));
            return Err(NotReady::Other { server: name.clone(), wanted: wanted.to_string(), installed });
        }
        Ok(record)
    }

    /// Cheap as long as nothing was touched; everything is read when something was.
    fn check(&self, record: &Record, folder: &Path) -> Result<(), String> {
        let unreadable = |e: std::io::Error| e.to_string();
        if tree::stamp(folder).map_err(unreadable)? != record.stamp
            && tree::hash(folder).map_err(unreadable)? != record.hash
        {
            return Err(format!("something in `{}` was changed", folder.display()));
        }
        match &record.run.runtime {
            Runtime::Node => Ok(()),
            Runtime::Python(then) => is_still(then),
        }
    }
}

impl Lease {
    fn on(folder: &Path) -> std::io::Result<Self> {
        let folder = File::open(folder)?;
        flock(&folder, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { _folder: folder })
    }
}

/// A virtual environment is of one Python, and of no other.
fn is_still(then: &Path) -> Result<(), String> {
    let now: PathBuf = pypi::python()?;
    if now == then {
        return Ok(());
    }
    Err(format!("the system's Python was `{}` and is `{}` now", then.display(), now.display()))
}

fn not_installed(server: &Server, package: &str) -> NotReady {
    NotReady::NotInstalled { server: server.name.clone(), package: package.to_owned() }
}

/// The entry with what was installed in the place of the package runner.
fn started(server: &Server, asked: &Asked, record: &Record, folder: &str) -> Server {
    let mut server = server.clone();
    server.command = match &record.run.runtime {
        Runtime::Node => "node".to_owned(),
        Runtime::Python(_) => format!("{folder}/venv/bin/python"),
    };
    server.args = vec![format!("{folder}/{}", record.run.program)];
    server.args.extend(asked.rest.iter().cloned());
    if let Runtime::Python(_) = record.run.runtime {
        // Nothing is written beside the modules, where they could be.
        server.env.entry("PYTHONDONTWRITEBYTECODE".to_owned()).or_insert_with(|| "1".to_owned());
    }
    if let Sandbox::Sandboxed(settings) = &mut server.sandbox {
        settings.filesystem.allow_read.push(folder.to_owned());
    }
    server
}
