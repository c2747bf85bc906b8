//! Detects changes to files: writes in place, renames that replace a file or its directory, and changes to a
//! symlink's target.
//!
//! - Watches directories instead of files, because a replaced file has a new inode.
//! - If a directory does not exist, watches its nearest existing ancestor.
//! - In folders with secrets, detects only new symlinks and folders, and reads no files.

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Time without events after which the files are read. Many programs write in several steps.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum time between the first event and reading the files, even if events keep arriving.
const MAX_DURATION: Duration = Duration::from_secs(1);

/// Device and inode numbers.
type Identity = (u64, u64);

/// Real paths of the files to follow, and the directories that must be watched for them.
pub(super) struct WatchedPaths {
    files: BTreeSet<PathBuf>,
    /// Folders with secrets, in which only new symlinks and folders matter.
    secret: BTreeSet<PathBuf>,
    /// Existing directories to watch.
    directories: BTreeMap<PathBuf, Identity>,
}

/// Watcher for configuration files.
pub(super) struct FileWatch {
    watcher: Result<RecommendedWatcher, Arc<notify::Error>>,
    events: mpsc::UnboundedReceiver<Vec<PathBuf>>,
    watched: BTreeMap<PathBuf, Identity>,
    /// Real paths of the followed files and of the symlinks that lead to them.
    paths: BTreeSet<PathBuf>,
    /// Folders with secrets, in which only new symlinks and folders matter.
    secret: BTreeSet<PathBuf>,
}

/// Reason why changes cannot be detected.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileWatchError {
    /// The operating system's file watcher is not available.
    #[error(transparent)]
    Unavailable(Arc<notify::Error>),
    /// A directory cannot be watched.
    #[error("failed to watch `{dir}`: {source}", dir = .dir.display())]
    Watch {
        /// Path of the directory.
        dir: PathBuf,
        /// Error from the watcher.
        source: notify::Error,
    },
}

impl FileWatch {
    /// Creates a watcher that watches no directories. Call [`FileWatch::arm`] next.
    pub(super) fn new() -> Self {
        let (send, events) = mpsc::unbounded_channel();
        let forward = move |event: notify::Result<Event>| {
            if let Some(paths) = touched(event) {
                // Sending fails if the receiver was dropped.
                let _ = send.send(paths);
            }
        };
        let watcher = notify::recommended_watcher(forward).map_err(Arc::new);
        Self { watcher, events, watched: BTreeMap::new(), paths: BTreeSet::new(), secret: BTreeSet::new() }
    }

    /// Replaces the set of watched directories. From then on, all changes in them are detected.
    ///
    /// # Errors
    /// Returns [`FileWatchError`] if the watcher is not available or a directory cannot be watched.
    pub(super) fn arm(&mut self, found: WatchedPaths) -> Result<(), FileWatchError> {
        let WatchedPaths { files, secret, mut directories } = found;
        (self.paths, self.secret) = (files, secret);
        let watcher = self.watcher.as_mut().map_err(|e| FileWatchError::Unavailable(e.clone()))?;
        let stale: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(dir, identity)| directories.get(*dir) != Some(identity))
            .map(|(dir, _)| dir.clone())
            .collect();
        for dir in stale {
            self.watched.remove(&dir);
            // Fails if the directory was removed.
            let _ = watcher.unwatch(&dir);
        }
        directories.retain(|dir, _| !self.watched.contains_key(dir));
        for (dir, identity) in directories {
            let watch = watcher.watch(&dir, RecursiveMode::NonRecursive);
            if let Err(source) = watch {
                return Err(FileWatchError::Watch { dir, source });
            }
            self.watched.insert(dir, identity);
        }
        Ok(())
    }

    /// Completes after a change, once no event has arrived for [`QUIET`], or at the latest after [`MAX_DURATION`].
    pub(super) async fn changed(&mut self) {
        self.touched().await;
        let last = Instant::now() + MAX_DURATION;
        loop {
            let quiet = (Instant::now() + QUIET).min(last);
            let again = timeout_at(quiet, self.touched()).await;
            if again.is_err() || Instant::now() >= last {
                return;
            }
        }
    }

    async fn touched(&mut self) {
        loop {
            match self.events.recv().await {
                Some(paths) if self.is_relevant(&paths) => return,
                Some(_) => {}
                // The watcher is unavailable, so no event will arrive.
                None => std::future::pending().await,
            }
        }
    }

    /// Returns `true` if an event concerns a followed file, a directory that leads to one, or a new symlink in a folder
    /// with secrets. An event without paths may concern any file.
    fn is_relevant(&self, paths: &[PathBuf]) -> bool {
        let leads_to_file = |path: &PathBuf| self.paths.iter().any(|watched| watched.starts_with(path));
        paths.is_empty() || paths.iter().any(|path| leads_to_file(path) || self.is_new_link(path))
    }

    fn is_new_link(&self, path: &Path) -> bool {
        let is_secret = path.parent().is_some_and(|folder| self.secret.contains(folder));
        is_secret && path.symlink_metadata().is_ok_and(|found| found.is_symlink() || found.is_dir())
    }
}

/// Returns an event's paths, or `None` if the event is only a read access.
fn touched(event: notify::Result<Event>) -> Option<Vec<PathBuf>> {
    match event {
        // The watcher may have lost events.
        Err(_) => Some(Vec::new()),
        Ok(event) if event.need_rescan() => Some(Vec::new()),
        Ok(Event { kind: EventKind::Access(AccessKind::Close(AccessMode::Write)), paths, .. }) => Some(paths),
        Ok(Event { kind: EventKind::Access(_), .. }) => None,
        Ok(event) => Some(event.paths),
    }
}

impl WatchedPaths {
    /// Determines the current real paths of the files. Blocks on file access.
    pub(super) fn find(files: &[PathBuf], secret: Vec<PathBuf>) -> Self {
        let directories = secret.iter().filter_map(|dir| directory_identity(dir)).collect();
        let mut found = Self { files: BTreeSet::new(), secret: secret.into_iter().collect(), directories };
        for file in files {
            let own = resolve_parent(file);
            let target = file.canonicalize().ok();
            for path in std::iter::once(own).chain(target) {
                // Watches two levels, because the directory itself may be replaced.
                for dir in path.ancestors().skip(1).filter_map(directory_identity).take(2) {
                    found.directories.insert(dir.0, dir.1);
                }
                found.files.insert(path);
            }
        }
        found
    }
}

/// Resolves all symlinks in a path except one in its last component.
fn resolve_parent(file: &Path) -> PathBuf {
    let real = file.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    real.and_then(|(above, real)| Some(real.join(file.strip_prefix(above).ok()?)))
        .unwrap_or_else(|| file.to_path_buf())
}

fn directory_identity(dir: &Path) -> Option<(PathBuf, Identity)> {
    let found = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((dir.to_path_buf(), (found.dev(), found.ino())))
}
