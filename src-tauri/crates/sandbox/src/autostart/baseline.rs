//! Baseline of a writable root: the autostart files it contained before a sandbox could write to it.

mod difference;
mod referenced;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};

pub(super) use difference::BaselineDifference;
pub(super) use referenced::ReferencedPaths;

use super::{
    GitConfig,
    config_references::ConfigReferences,
    file_stamp::{FileIdentity, FileStamp, wait_past},
    folder_walk::{FolderWalk, WalkBounds},
    git,
    git_folders::GitFolders,
    name_table::{ContentCheck, KnownName, NameTable, is_git_by_name},
    name_text::to_os_str,
    paths::{file_name, join, parent},
    reopened_folders::open_folder,
};

/// Limits of the baseline walk. A walk that reaches them takes about 0.1 s if the disk is cached.
const WALK_BOUNDS: WalkBounds = WalkBounds { names: 25_000, folders: 3_000, time: Duration::from_secs(5) };
/// Maximum number of content bytes kept in memory per file (`MAX_KEPT_LEN`) and per root (`MAX_KEPT`).
pub(super) const MAX_KEPT_LEN: usize = 64 << 10;
const MAX_KEPT: usize = 4 << 20;

/// State of the read-only mount that protects a baseline file in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CoverState {
    /// Not mounted: the sandbox can write to the file.
    None,
    Covered,
    /// A program outside the sandbox has replaced the file under the mount.
    Replaced,
    /// While an event was processed, the path did not exist or contained a different file.
    Doubtful,
}

/// Autostart file that existed when the root became writable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaselineEntry {
    pub(super) stamp: FileStamp,
    pub(super) cover: CoverState,
    #[serde(skip)]
    pub(super) content: Option<Vec<u8>>,
    /// Text of a git configuration. It is journaled, so another process can restore the configuration if this process
    /// is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<String>,
}

/// State of a root when it became writable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Baseline {
    root: String,
    /// Paths to which folders have been moved since the baseline was recorded.
    #[serde(skip)]
    moved_folders: BTreeSet<String>,
    since: (i64, u32),
    #[serde(rename = "whole")]
    is_complete: bool,
    /// State of the root directory or file.
    #[serde(rename = "itself")]
    pub(super) root_stamp: FileStamp,
    pub(super) entries: BTreeMap<String, BaselineEntry>,
    #[serde(skip)]
    files: BTreeMap<FileIdentity, String>,
    /// Reasons the baseline is incomplete.
    #[serde(skip)]
    pub(super) skipped: Vec<String>,
    #[serde(skip)]
    kept_bytes: usize,
}

/// Arguments of [`Baseline::record`].
pub(super) struct BaselineInputs<'a> {
    pub(super) names: &'a NameTable,
    pub(super) git_config: GitConfig,
    pub(super) git_folders: &'a mut GitFolders,
    pub(super) references: &'a mut ConfigReferences,
    pub(super) referenced: ReferencedPaths,
    /// Starts watching a folder. Called before the folder is read.
    pub(super) watch: &'a mut dyn FnMut(&str, &OwnedFd) -> io::Result<()>,
}

impl Baseline {
    /// Watches `root` and records its autostart files.
    pub(super) fn record(root: &str, mut inputs: BaselineInputs<'_>) -> io::Result<Self> {
        let started = time(ClockId::Realtime);
        let root_stamp = FileStamp::at(CWD, root)?;
        let (entries, files) = (BTreeMap::new(), BTreeMap::new());
        let mut baseline = Self {
            root: root.to_owned(),
            moved_folders: BTreeSet::new(),
            since: started,
            is_complete: true,
            root_stamp,
            entries,
            files,
            skipped: vec![],
            kept_bytes: 0,
        };
        inputs.add_from_home(root);
        inputs.add_from_enclosing(root);
        let found = inputs.references.find(root).or_else(|| inputs.names.find(root, is_git_by_name));
        if let Some((known, _)) = found
            .filter(|(known, _)| !root_stamp.is_dir || known.folder && inputs.names.makes_read_only(known))
        {
            baseline.add(&open_folder(parent(root))?, root, &known, &mut inputs);
        } else if root_stamp.is_dir {
            baseline.walk(root, &mut inputs)?;
            baseline.protect_referenced(root, &mut inputs);
        }
        // File timestamps lag behind the clock by milliseconds, or have a finer resolution. A file written before this
        // point has an earlier timestamp than the time taken here, and a file written after this point does not.
        let file_time = || time(ClockId::RealtimeCoarse);
        baseline.since = if baseline.is_complete { file_time() } else { wait_past(started, file_time) };
        Ok(baseline)
    }

    fn walk(&mut self, root: &str, inputs: &mut BaselineInputs<'_>) -> io::Result<()> {
        let mut walk = FolderWalk::new(root, WALK_BOUNDS, false)?;
        while let Some((path, dir)) = walk.next() {
            (inputs.watch)(&path, &dir)?;
            let names = walk.list_names(&path, &dir, inputs.git_folders);
            if names.iter().any(|(name, _)| name == ".git") {
                inputs.referenced.work_trees.push(path.clone());
            }
            let inside = inputs.names.find(&path, |path| inputs.git_folders.contains(path));
            let inside = inside.map(|(known, _)| known).filter(|known| known.folder);
            for (name, is_dir) in names {
                let child = join(&path, &name);
                let exactly = inputs.names.find_exact(&child, |path| inputs.git_folders.contains(path));
                let everywhere = || inputs.references.user.find_relative(&child).map(|(known, _)| known);
                let known = exactly.or_else(everywhere).filter(|known| known.folder || !is_dir);
                let is_closed = known.is_some_and(|known| is_dir && inputs.names.makes_read_only(&known));
                if let Some(known) = if is_dir { known } else { known.or(inside) } {
                    self.add(&dir, &child, &known, inputs);
                }
                if is_dir && !is_closed {
                    walk.enqueue(child, inputs.git_folders);
                }
            }
        }
        self.is_complete = walk.skipped.is_empty();
        self.skipped = walk.skipped;
        Ok(())
    }

    /// Records a file or folder. For a symlink, also records the target, which is the program that would run.
    fn add(&mut self, dir: &OwnedFd, path: &str, known: &KnownName, inputs: &mut BaselineInputs<'_>) {
        let Ok(stamp) = FileStamp::at(dir, file_name(path)) else { return };
        let is_config = known.group.check == ContentCheck::GitConfig;
        let is_guarded = is_config && inputs.git_config == GitConfig::Guarded && stamp.is_file;
        let cover = if inputs.names.makes_read_only(known) && !is_guarded {
            CoverState::Covered
        } else {
            CoverState::None
        };
        let max_len = if is_config { git::MAX_LEN } else { MAX_KEPT_LEN };
        let is_kept = is_config || self.kept_bytes < MAX_KEPT;
        let content = (is_kept && stamp.is_file).then(|| read_bounded(dir, file_name(path), max_len));
        let content = content.flatten();
        // A repository's configuration is always kept, because it may have to be restored.
        self.kept_bytes += content.as_ref().filter(|_| !is_config).map_or(0, Vec::len);
        let config = content.clone().filter(|_| is_config).and_then(|text| String::from_utf8(text).ok());
        self.insert(path.to_owned(), BaselineEntry { stamp, cover, content, config });
        let is_link = !stamp.is_dir && !stamp.is_file;
        let is_hooks = known.folder && known.group.check == ContentCheck::Hook;
        if cover == CoverState::Covered && (is_link || is_hooks) && !inputs.referenced.contains(path) {
            inputs.referenced.add(inputs.references, path, *known);
        }
    }

    fn insert(&mut self, path: String, entry: BaselineEntry) {
        self.files.insert(entry.stamp.identity(), path.clone());
        self.entries.insert(path, entry);
    }

    /// Recomputes the fields that are not journaled.
    pub(super) fn rebuild_indexes(&mut self) {
        for (path, entry) in &mut self.entries {
            self.files.insert(entry.stamp.identity(), path.clone());
            entry.content = entry.config.clone().map(String::into_bytes);
        }
    }

    /// Records that a program outside the sandbox has replaced a covered file.
    pub(super) fn replace(&mut self, path: &str, stamp: FileStamp) {
        if let Some(entry) = self.entries.get_mut(path) {
            (entry.stamp, entry.cover) = (stamp, CoverState::Replaced);
        }
    }

    /// Updates the baseline with the current file at a path so that the file is no longer reported as changed.
    pub(super) fn update_entry(&mut self, path: &str, stamp: FileStamp, content: Option<Vec<u8>>) {
        let cover = self.entries.get(path).map_or(CoverState::None, |entry| entry.cover);
        // A file that was replaced from outside the sandbox keeps the replacement's identity.
        let stamp = self
            .entries
            .get(path)
            .map(|entry| entry.stamp)
            .filter(|_| cover != CoverState::None)
            .unwrap_or(stamp);
        self.insert(path.to_owned(), BaselineEntry { stamp, cover, content, config: None });
    }

    /// Returns the paths that must be read-only in the sandbox.
    pub(super) fn protected_paths(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().filter(|(_, entry)| entry.cover != CoverState::None).map(|(path, _)| path)
    }

    /// Records that a folder was moved to `path`.
    pub(super) fn record_move(&mut self, path: &str) {
        self.moved_folders.insert(path.to_owned());
    }
}

fn time(clock: ClockId) -> (i64, u32) {
    let now = clock_gettime(clock);
    (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Returns a file's content, or `None` if it is longer than `max_len` or not a regular file.
pub(super) fn read_bounded(dir: &OwnedFd, name: &str, max_len: usize) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(dir, &*to_os_str(name), flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    let read = file.take(max_len as u64 + 1).read_to_end(&mut content).ok()?;
    (read <= max_len).then_some(content)
}
