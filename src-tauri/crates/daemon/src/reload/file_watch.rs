//! Noticing that files change, whichever way they are written: in place, by a rename, with their directory, or where a
//! link leads.
//!
//! - The directories are watched, not the files: what replaces a file has its name, not its inode.
//! - A directory that is not there is waited for in the nearest one above it that is.
//! - In folders of secrets only a new link or a new folder counts: nothing is read from them.

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Who writes a file does it in several steps. It is looked at when they have been over for this long.
const QUIET: Duration = Duration::from_millis(50);

/// However often a file is written, it is looked at after this.
const LONGEST: Duration = Duration::from_secs(1);

/// Device and inode.
type Identity = (u64, u64);

/// The real paths of files, and the directories to watch for them.
pub(super) struct WatchedPaths {
    files: BTreeSet<PathBuf>,
    /// Those in which a new link counts.
    secret: BTreeSet<PathBuf>,
    /// Those to watch.
    directories: BTreeMap<PathBuf, Identity>,
}

/// Watches files.
pub(super) struct FileWatch {
    watcher: Result<RecommendedWatcher, Arc<notify::Error>>,
    events: mpsc::UnboundedReceiver<Vec<PathBuf>>,
    watched: BTreeMap<PathBuf, Identity>,
    /// The files, and what links at their places lead to, without symlinks in the way there.
    places: BTreeSet<PathBuf>,
    /// Folders in which a new link counts.
    secret: BTreeSet<PathBuf>,
}

/// Why changes are not noticed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileWatchError {
    /// There is no watcher.
    #[error(transparent)]
    NoWatcher(Arc<notify::Error>),
    /// The watcher does not take a directory.
    #[error("`{dir}` cannot be watched: {source}", dir = .dir.display())]
    Unwatched {
        /// The directory.
        dir: PathBuf,
        /// The watcher's answer.
        source: notify::Error,
    },
}

impl FileWatch {
    /// Watches nothing yet: see [`FileWatch::arm`].
    pub(super) fn new() -> Self {
        let (send, events) = mpsc::unbounded_channel();
        let tell = move |event: notify::Result<Event>| {
            if let Some(paths) = touched(event) {
                // Without a listener nobody wants to know.
                let _ = send.send(paths);
            }
        };
        let watcher = notify::recommended_watcher(tell).map_err(Arc::new);
        Self { watcher, events, watched: BTreeMap::new(), places: BTreeSet::new(), secret: BTreeSet::new() }
    }

    /// Watches the directories as they were just found. What changes from now on is noticed.
    ///
    /// # Errors
    /// [`FileWatchError`]: some of it is not noticed.
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
            // One that is gone is not watched any more.
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

    /// Completes when something has changed and is quiet again.
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

    /// A file, a directory on the way to one, or a link to something secret. No path means that anything may have changed.
    fn concern(&self, paths: &[PathBuf]) -> bool {
        let is_on_the_way = |path: &PathBuf| self.places.iter().any(|place| place.starts_with(path));
        paths.is_empty() || paths.iter().any(|path| is_on_the_way(path) || self.is_new_link(path))
    }

    fn is_new_link(&self, path: &Path) -> bool {
        let is_secret = path.parent().is_some_and(|folder| self.secret.contains(folder));
        is_secret && path.symlink_metadata().is_ok_and(|found| found.is_symlink() || found.is_dir())
    }
}

/// The paths an event is about; nothing when it changes nothing, as reading a file does.
fn touched(event: notify::Result<Event>) -> Option<Vec<PathBuf>> {
    match event {
        // Some may have been lost.
        Err(_) => Some(Vec::new()),
        Ok(event) if event.need_rescan() => Some(Vec::new()),
        Ok(Event { kind: EventKind::Access(AccessKind::Close(AccessMode::Write)), paths, .. }) => Some(paths),
        Ok(Event { kind: EventKind::Access(_), .. }) => None,
        Ok(event) => Some(event.paths),
    }
}

impl WatchedPaths {
    /// Finds the real paths of the files as of now. Blocking.
    pub(super) fn find(files: &[PathBuf], secret: Vec<PathBuf>) -> Self {
        let directories = secret.iter().filter_map(|dir| there(dir)).collect();
        let mut found = Self { files: BTreeSet::new(), secret: secret.into_iter().collect(), directories };
        for file in files {
            let spelled = spelled(file);
            let target = file.canonicalize().ok();
            for place in std::iter::once(spelled).chain(target) {
                // The one it is in, and the one that is in: a directory may be replaced as well.
                for dir in place.ancestors().skip(1).filter_map(there).take(2) {
                    found.directories.insert(dir.0, dir.1);
                }
                found.files.insert(place);
            }
        }
        found
    }
}

/// The path without symlinks in the directories that are there; the last name stays as it is.
fn spelled(file: &Path) -> PathBuf {
    let real = file.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    real.and_then(|(above, real)| Some(real.join(file.strip_prefix(above).ok()?)))
        .unwrap_or_else(|| file.to_path_buf())
}

fn there(dir: &Path) -> Option<(PathBuf, Identity)> {
    let found = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((dir.to_path_buf(), (found.dev(), found.ino())))
}
