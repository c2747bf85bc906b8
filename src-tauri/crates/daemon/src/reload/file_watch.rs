//! Detects changes of files: in place, by a rename, through their directory, or at the target of a symlink.
//!
//! - Watches directories instead of files: a replacement has the same name but another inode.
//! - For a missing directory, watches the nearest existing ancestor.
//! - In folders with secrets, only a new symlink or folder counts; nothing is read from them.

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Files are read after this quiet period, because writers often need several steps.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum delay, however often a file is written.
const LONGEST: Duration = Duration::from_secs(1);

/// Device and inode.
type Identity = (u64, u64);

/// Real paths of files, and the directories to watch for them.
pub(super) struct WatchedPaths {
    files: BTreeSet<PathBuf>,
    /// Folders in which a new symlink counts.
    secret: BTreeSet<PathBuf>,
    /// Directories to watch.
    directories: BTreeMap<PathBuf, Identity>,
}

/// Watches files.
pub(super) struct FileWatch {
    watcher: Result<RecommendedWatcher, Arc<notify::Error>>,
    events: mpsc::UnboundedReceiver<Vec<PathBuf>>,
    watched: BTreeMap<PathBuf, Identity>,
    /// Files and their symlink targets, as paths without symlinks.
    places: BTreeSet<PathBuf>,
    /// Folders in which a new symlink counts.
    secret: BTreeSet<PathBuf>,
}

/// Why changes are not detected.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileWatchError {
    /// No watcher is available.
    #[error(transparent)]
    NoWatcher(Arc<notify::Error>),
    /// The directory cannot be watched.
    #[error("failed to watch `{dir}`: {source}", dir = .dir.display())]
    Unwatched {
        /// The directory.
        dir: PathBuf,
        /// Error of the watcher.
        source: notify::Error,
    },
}

impl FileWatch {
    /// Creates a watch of nothing; see [`FileWatch::arm`].
    pub(super) fn new() -> Self {
        let (send, events) = mpsc::unbounded_channel();
        let tell = move |event: notify::Result<Event>| {
            if let Some(paths) = touched(event) {
                // A closed receiver needs no notification.
                let _ = send.send(paths);
            }
        };
        let watcher = notify::recommended_watcher(tell).map_err(Arc::new);
        Self { watcher, events, watched: BTreeMap::new(), places: BTreeSet::new(), secret: BTreeSet::new() }
    }

    /// Watches the directories found. Later changes are detected.
    ///
    /// # Errors
    /// Returns a [`FileWatchError`] if some cannot be watched.
    pub(super) fn arm(&mut self, found: WatchedPaths) -> Result<(), FileWatchError> {
        let WatchedPaths { files, secret, mut directories } = found;
        (self.places, self.secret) = (files, secret);
        let watcher = self.watcher.as_mut().map_err(|e| FileWatchError::NoWatcher(e.clone()))?;
        let stale: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(dir, identity)| directories.get(*dir) != Some(identity))
            .map(|(dir, _)| dir.clone())
            .collect();
        for dir in stale {
            self.watched.remove(&dir);
            // The directory may have been removed.
            let _ = watcher.unwatch(&dir);
        }
        directories.retain(|dir, _| !self.watched.contains_key(dir));
        for (dir, identity) in directories {
            let watch = watcher.watch(&dir, RecursiveMode::NonRecursive);
            if let Err(source) = watch {
                return Err(FileWatchError::Unwatched { dir, source });
            }
            self.watched.insert(dir, identity);
        }
        Ok(())
    }

    /// Completes after a change, once it is quiet again.
    pub(super) async fn changed(&mut self) {
        self.touched().await;
        let last = Instant::now() + LONGEST;
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
                Some(paths) if self.concern(&paths) => return,
                Some(_) => {}
                // There is no watcher.
                None => std::future::pending().await,
            }
        }
    }

    /// Returns whether an event matters: a file, a directory on its path, or a symlink to a secret. Without paths, anything may have
    /// changed.
    fn concern(&self, paths: &[PathBuf]) -> bool {
        let is_on_the_way = |path: &PathBuf| self.places.iter().any(|place| place.starts_with(path));
        paths.is_empty() || paths.iter().any(|path| is_on_the_way(path) || self.is_new_link(path))
    }

    fn is_new_link(&self, path: &Path) -> bool {
        let is_secret = path.parent().is_some_and(|folder| self.secret.contains(folder));
        is_secret && path.symlink_metadata().is_ok_and(|found| found.is_symlink() || found.is_dir())
    }
}

/// Returns the paths of an event, or `None` if nothing was modified, as on a read.
fn touched(event: notify::Result<Event>) -> Option<Vec<PathBuf>> {
    match event {
        // Events may have been lost.
        Err(_) => Some(Vec::new()),
        Ok(event) if event.need_rescan() => Some(Vec::new()),
        Ok(Event { kind: EventKind::Access(AccessKind::Close(AccessMode::Write)), paths, .. }) => Some(paths),
        Ok(Event { kind: EventKind::Access(_), .. }) => None,
        Ok(event) => Some(event.paths),
    }
}

impl WatchedPaths {
    /// Finds the current real paths of the files. Blocking.
    pub(super) fn find(files: &[PathBuf], secret: Vec<PathBuf>) -> Self {
        let directories = secret.iter().filter_map(|dir| there(dir)).collect();
        let mut found = Self { files: BTreeSet::new(), secret: secret.into_iter().collect(), directories };
        for file in files {
            let spelled = spelled(file);
            let target = file.canonicalize().ok();
            for place in std::iter::once(spelled).chain(target) {
                // Also its parent's parent: the directory itself may be replaced.
                for dir in place.ancestors().skip(1).filter_map(there).take(2) {
                    found.directories.insert(dir.0, dir.1);
                }
                found.files.insert(place);
            }
        }
        found
    }
}

/// Resolves symlinks in existing directories, but not in the last component.
fn spelled(file: &Path) -> PathBuf {
    let real = file.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    real.and_then(|(above, real)| Some(real.join(file.strip_prefix(above).ok()?)))
        .unwrap_or_else(|| file.to_path_buf())
}

fn there(dir: &Path) -> Option<(PathBuf, Identity)> {
    let found = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((dir.to_path_buf(), (found.dev(), found.ino())))
}
