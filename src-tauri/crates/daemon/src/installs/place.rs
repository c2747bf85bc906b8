//! The folders of all packages: one installer at a time, putting things in their place, and sweeping up.

use super::record::Record;
use super::workshop::{STAGING, Workshop};
use super::{Asked, InstallError, Installs, tree};
use crate::config::Servers;
use crate::home::private_dir;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of the hash is in a folder's name.
const SHORT: usize = 12;

/// Nobody else installs or removes while this is held.
pub(super) struct Alone {
    _lock: File,
}

impl Installs {
    /// Waits for nobody.
    pub(super) fn alone(&self) -> Result<Alone, InstallError> {
        private_dir(&self.records)?;
        private_dir(&self.files)?;
        let path = self.records.join("lock");
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let lock = lock.map_err(|source| InstallError::Folder { path: path.clone(), source })?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Alone { _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(InstallError::Busy),
            Err(e) => Err(InstallError::Folder { path, source: e.into() }),
        }
    }

    /// Puts what was made into its place, closed, and completes its record.
    pub(super) fn settle(&self, _alone: &Alone, shop: &Workshop, record: Record) -> io::Result<Record> {
        tree::close(&shop.tree)?;
        let hash = tree::hash(&shop.tree)?;
        let short: String = hash.chars().skip_while(|c| *c != ':').skip(1).take(SHORT).collect();
        let wanted = &record.wanted;
        let name = wanted.package.replace('/', "+");
        let folder = format!("{}/{name}/{}-{short}", wanted.registry.name(), record.version);
        let place = self.files.join(&folder);
        if let Some(above) = place.parent() {
            private_dir(above).map_err(io::Error::other)?;
        }
        // The very same may be there already, with servers running from it.
        if !place.exists() || tree::hash(&place)? != hash {
            if in_use(&place)? {
                return Err(io::Error::other(
                    "a server runs from what was changed there; end its session first",
                ));
            }
            tree::remove(&place)?;
            std::fs::rename(&shop.tree, &place)?;
        }
        tree::close_top(&place)?;
        Ok(Record { hash, stamp: tree::stamp(&place)?, folder, ..record })
    }

    /// Removes what no server's entry asks for any more: leftovers of what was broken off, and what was replaced. What a
    /// server was started from stays until the next time.
    pub(super) fn sweep(&self, _alone: &Alone, servers: &Servers) -> io::Result<()> {
        let mut kept = BTreeSet::new();
        for name in self.recorded() {
            let asked =
                servers.find(Some(&name)).is_some_and(|server| matches!(Asked::of(server), Ok(Some(_))));
            match self.record(&name) {
                Ok(Some(record)) if asked => drop(kept.insert(self.folder(&record))),
                Ok(Some(_)) => self.forget(&name)?,
                // What is not understood keeps its file; its folder nobody knows.
                Ok(None) | Err(_) => {}
            }
        }
        for registry in folders(&self.files)? {
            if is_staging(&registry) {
                tree::remove(&registry)?;
                continue;
            }
            for package in folders(&registry)? {
                for version in folders(&package)? {
                    if !kept.contains(&version) && !in_use(&version)? {
                        tree::remove(&version)?;
                    }
                }
                // Whatever is still in it keeps it.
                let _ = std::fs::remove_dir(&package);
            }
        }
        Ok(())
    }
}

fn is_staging(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(STAGING))
}

/// Whether a server was started from a folder and has not ended.
fn in_use(folder: &Path) -> io::Result<bool> {
    let folder = match File::open(folder) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// The folders in a folder; links are not followed.
fn folders(of: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for child in std::fs::read_dir(of)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            found.push(child.path());
        }
    }
    Ok(found)
}
