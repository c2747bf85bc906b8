//! The installed packages and their records. A lock ensures that only one installer changes them at a time.

use super::build_sandbox::{BuildSandbox, STAGING};
use super::{InstallError, Installer};
use ironcurtain_config::Servers;
use ironcurtain_config::home::{Home, private_dir};
use ironcurtain_packages::{PackageRecord, Packages, RunnerCommand, tree};
use ironcurtain_paths::atomic_file;
use ironcurtain_visible as visible;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Number of characters of a package's hash in its folder name.
const HASH_PREFIX_LEN: usize = 12;

/// Maximum number of bytes to read from the lock file, which contains a server name.
const MAX_NAME_LEN: u64 = 200;

/// Error if another installation holds the lock.
pub(super) struct LockHeld {
    /// Server whose package is being installed.
    pub(super) holder: String,
    lock: File,
    packages: Packages,
}

/// The locked packages folder. While the value exists, no other process installs or removes packages.
pub(super) struct PackageStore {
    pub(super) packages: Packages,
    _lock: File,
}

impl PackageStore {
    /// Locks the packages for a server. If the installer has a `on_wait` callback, waits for another installation to
    /// finish, up to the installer's timeout.
    pub(super) async fn lock(installer: &Installer, server: &str) -> Result<Self, InstallError> {
        let held = match Self::try_lock(&installer.home, server)? {
            Ok(store) => return Ok(store),
            Err(held) => held,
        };
        let Some(on_wait) = installer.on_wait else { return Err(InstallError::Locked(held.holder)) };
        on_wait(&held.holder);
        let LockHeld { holder, lock, packages } = held;
        let path = packages.records.join("lock");
        let locked = tokio::task::spawn_blocking(move || {
            flock(&lock, FlockOperation::LockExclusive).map(|()| lock).map_err(io::Error::from)
        });
        let Ok(locked) = tokio::time::timeout(installer.timeout, locked).await else {
            return Err(InstallError::Locked(holder));
        };
        let lock = locked.map_err(io::Error::other).flatten();
        let lock = lock.map_err(|source| InstallError::Folder { path: path.clone(), source })?;
        Self::with_lock(packages, lock, server)
    }

    /// Locks the packages without waiting for another installation.
    pub(super) fn try_lock(home: &Home, server: &str) -> Result<Result<Self, LockHeld>, InstallError> {
        let packages = Packages::in_home(home);
        private_dir(&packages.records)?;
        private_dir(&packages.files)?;
        let path = packages.records.join("lock");
        let folder_error = |source| InstallError::Folder { path: path.clone(), source };
        let lock =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(folder_error)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Self::with_lock(packages, lock, server).map(Ok),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                (&lock).take(MAX_NAME_LEN).read_to_string(&mut holder).map_err(folder_error)?;
                Ok(Err(LockHeld { holder: visible::line(&holder), lock, packages }))
            }
            Err(e) => Err(folder_error(e.into())),
        }
    }

    /// Writes the server's name to the lock file.
    fn with_lock(packages: Packages, lock: File, server: &str) -> Result<Self, InstallError> {
        let written = lock.set_len(0).and_then(|()| lock.write_all_at(server.as_bytes(), 0));
        let path = packages.records.join("lock");
        written.map_err(|source| InstallError::Folder { path, source })?;
        Ok(Self { packages, _lock: lock })
    }

    /// Moves a built package to the packages folder, makes it read-only and completes its record.
    pub(super) fn install_built(
        &self,
        built: &BuildSandbox,
        mut record: PackageRecord,
    ) -> io::Result<PackageRecord> {
        tree::make_read_only(&built.tree)?;
        let hash = tree::content_hash(&built.tree)?;
        let hash_prefix: String =
            hash.chars().skip_while(|c| *c != ':').skip(1).take(HASH_PREFIX_LEN).collect();
        let name = record.requested.package.replace('/', "+");
        let folder = format!("{}/{name}/{}-{hash_prefix}", record.requested.registry.name(), record.version);
        let path = self.packages.files.join(&folder);
        if let Some(parent) = path.parent() {
            private_dir(parent).map_err(io::Error::other)?;
        }
        // An identical package may already exist, and servers may be running from it.
        if !path.exists() || tree::content_hash(&path)? != hash {
            if in_use(&path)? {
                return Err(io::Error::other(
                    "its installed files were changed, and a server is running from them; close its session first",
                ));
            }
            tree::remove(&path)?;
            std::fs::rename(&built.tree, &path)?;
        }
        tree::make_root_read_only(&path)?;
        (record.metadata_hash, record.hash, record.folder) = (tree::metadata_hash(&path)?, hash, folder);
        Ok(record)
    }

    /// Writes the record of a server atomically.
    pub(super) fn write(&self, server: &str, record: &PackageRecord) -> Result<(), InstallError> {
        let file = self.packages.record_file(server);
        let written = serde_json::to_string_pretty(record)
            .map_err(io::Error::from)
            .and_then(|text| atomic_file::replace(&file, &(text + "\n")));
        written.map_err(|source| InstallError::Write { file, source })
    }

    /// Removes the leftovers of interrupted installations, and packages that no server uses. Keeps a package while a
    /// server is running from it.
    pub(super) fn sweep(&self, servers: &Servers) -> Result<(), InstallError> {
        self.sweep_folders(servers)
            .map_err(|source| InstallError::Folder { path: self.packages.files.clone(), source })
    }

    fn sweep_folders(&self, servers: &Servers) -> io::Result<()> {
        let referenced = self.referenced_folders(servers)?;
        for registry in subfolders(&self.packages.files)? {
            if is_staging(&registry) {
                tree::remove(&registry)?;
                continue;
            }
            for package in subfolders(&registry)? {
                for version in subfolders(&package)? {
                    if !referenced.contains(&version) && !in_use(&version)? {
                        tree::remove(&version)?;
                    }
                }
                // Fails if the folder still contains other versions, which is fine.
                let _ = std::fs::remove_dir(&package);
            }
        }
        Ok(())
    }

    /// Removes records that no server uses. Returns the package folders named by the remaining records.
    fn referenced_folders(&self, servers: &Servers) -> io::Result<BTreeSet<PathBuf>> {
        let mut folders = BTreeSet::new();
        for name in self.recorded_servers() {
            let is_referenced =
                servers.find(Some(&name)).is_some_and(|s| matches!(RunnerCommand::parse(s), Ok(Some(_))));
            match self.packages.record(&name) {
                Ok(Some(record)) if is_referenced => drop(folders.insert(self.packages.folder(&record))),
                Ok(Some(_)) => std::fs::remove_file(self.packages.record_file(&name))?,
                // An invalid record is kept, because its folder is unknown.
                Ok(None) | Err(_) => {}
            }
        }
        Ok(folders)
    }

    /// Returns the names of servers with a record.
    fn recorded_servers(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.packages.records).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect()
    }
}

fn is_staging(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(STAGING))
}

/// Returns `true` if a running process was started from the folder.
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

/// Returns the direct subfolders, except symlinks.
fn subfolders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for child in std::fs::read_dir(parent)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            found.push(child.path());
        }
    }
    Ok(found)
}
