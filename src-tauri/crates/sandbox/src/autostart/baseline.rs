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
    file_stamp::{FileIdentity, FileStamp, once_past},
    folder_walk::{FolderWalk, WalkBounds},
    git,
    git_folders::GitFolders,
    name_table::{ContentCheck, KnownName, NameTable, is_git_by_name},
    name_text::raw,
    paths::{above, join, last},
    reopened_folders::open_folder,
};

/// Limits of the baseline walk. A walk that reaches them takes about 0.1 s if the disk is cached.
const BOUNDS: WalkBounds = WalkBounds { names: 25_000, folders: 3_000, time: Duration::from_secs(5) };
/// Maximum number of content bytes kept in memory per file (`MAX_KEPT_LEN`) and per root (`MAX_KEPT`).
pub(super) const MAX_KEPT_LEN: usize = 64 << 10;
const MAX_KEPT: usize = 4 << 20;

/// State of the read-only mount that protects a baseline file in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cover {
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
    pub(super) cover: Cover,
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
    moved: BTreeSet<String>,
    since: (i64, u32),
    whole: bool,
    /// State of the root directory or file.
    pub(super) itself: FileStamp,
    pub(super) entries: BTreeMap<String, BaselineEntry>,
    #[serde(skip)]
    files: BTreeMap<FileIdentity, String>,
    /// Reasons the baseline is incomplete.
    #[serde(skip)]
    pub(super) missed: Vec<String>,
    #[serde(skip)]
    kept: usize,
}

/// Arguments of [`Baseline::record`].
pub(super) struct Recording<'a> {
    pub(super) names: &'a NameTable,
    pub(super) git_config: GitConfig,
    pub(super) git_folders: &'a mut GitFolders,
    pub(super) references: &'a mut ConfigReferences,
    pub(super) led: ReferencedPaths,
    /// Starts watching a folder. Called before the folder is read.
    pub(super) watch: &'a mut dyn FnMut(&str, &OwnedFd) -> io::Result<()>,
}

impl Baseline {
    /// Watches `root` and records its autostart files.
    pub(super) fn record(root: &str, mut recording: Recording<'_>) -> io::Result<Self> {
        let begun = time(ClockId::Realtime);
        let itself = FileStamp::of(CWD, root)?;
        let (entries, files) = (BTreeMap::new(), BTreeMap::new());
        let mut baseline = Self {
            root: root.to_owned(),
            moved: BTreeSet::new(),
            since: begun,
            whole: true,
            itself,
            entries,
            files,
            missed: vec![],
            kept: 0,
        };
        recording.add_from_home(root);
        recording.add_from_around(root);
        let found = recording.references.row(root).or_else(|| recording.names.find(root, is_git_by_name));
        if let Some((row, _)) =
            found.filter(|(row, _)| !itself.is_dir || row.folder && recording.names.closes(row))
        {
            baseline.add(&open_folder(above(root))?, root, &row, &mut recording);
        } else if itself.is_dir {
            baseline.walk(root, &mut recording)?;
            baseline.close_referenced(root, &mut recording);
        }
        // File timestamps lag behind the clock by milliseconds, or have a finer resolution. A file written before this
        // point has an earlier timestamp than the time taken here, and a file written after this point does not.
        let stamping = || time(ClockId::RealtimeCoarse);
        baseline.since = if baseline.whole { stamping() } else { once_past(begun, stamping) };
        Ok(baseline)
    }

    fn walk(&mut self, root: &str, recording: &mut Recording<'_>) -> io::Result<()> {
        let mut walk = FolderWalk::new(root, BOUNDS, false)?;
        while let Some((path, dir)) = walk.next() {
            (recording.watch)(&path, &dir)?;
            let names = walk.names(&path, &dir, recording.git_folders);
            if names.iter().any(|(name, _)| name == ".git") {
                recording.led.tops.push(path.clone());
            }
            let inside = recording.names.find(&path, |path| recording.git_folders.holds(path));
            let inside = inside.map(|(row, _)| row).filter(|row| row.folder);
            for (name, is_dir) in names {
                let child = join(&path, &name);
                let exactly = recording.names.exactly(&child, |path| recording.git_folders.holds(path));
                let everywhere = || recording.references.user.everywhere(&child).map(|(known, _)| known);
                let row = exactly.or_else(everywhere).filter(|row| row.folder || !is_dir);
                let is_closed = row.is_some_and(|row| is_dir && recording.names.closes(&row));
                if let Some(row) = if is_dir { row } else { row.or(inside) } {
                    self.add(&dir, &child, &row, recording);
                }
                if is_dir && !is_closed {
                    walk.enter(child, recording.git_folders);
                }
            }
        }
        self.whole = walk.missed.is_empty();
        self.missed = walk.missed;
        Ok(())
    }

    /// Records a file or folder. For a symlink, also records the target, which is the program that would run.
    fn add(&mut self, dir: &OwnedFd, path: &str, row: &KnownName, recording: &mut Recording<'_>) {
        let Ok(stamp) = FileStamp::of(dir, last(path)) else { return };
        let is_config = row.group.check == ContentCheck::GitConfig;
        let is_guarded = is_config && recording.git_config == GitConfig::Guarded && stamp.is_file;
        let cover = if recording.names.closes(row) && !is_guarded { Cover::Covered } else { Cover::None };
        let longest = if is_config { git::MAX_LEN } else { MAX_KEPT_LEN };
        let is_kept = is_config || self.kept < MAX_KEPT;
        let content = (is_kept && stamp.is_file).then(|| content(dir, last(path), longest));
        let content = content.flatten();
        // A repository's configuration is always kept, because it may have to be restored.
        self.kept += content.as_ref().filter(|_| !is_config).map_or(0, Vec::len);
        let config = content.clone().filter(|_| is_config).and_then(|text| String::from_utf8(text).ok());
        self.insert(path.to_owned(), BaselineEntry { stamp, cover, content, config });
        let is_link = !stamp.is_dir && !stamp.is_file;
        let is_hooks = row.folder && row.group.check == ContentCheck::Hook;
        if cover == Cover::Covered && (is_link || is_hooks) && !recording.led.has(path) {
            recording.led.lead(recording.references, path, *row);
        }
    }

    fn insert(&mut self, path: String, entry: BaselineEntry) {
        self.files.insert(entry.stamp.identity(), path.clone());
        self.entries.insert(path, entry);
    }

    /// Recomputes the fields that are not journaled.
    pub(super) fn restore(&mut self) {
        for (path, entry) in &mut self.entries {
            self.files.insert(entry.stamp.identity(), path.clone());
            entry.content = entry.config.clone().map(String::into_bytes);
        }
    }

    /// Records that a program outside the sandbox has replaced a covered file.
    pub(super) fn replace(&mut self, path: &str, stamp: FileStamp) {
        if let Some(entry) = self.entries.get_mut(path) {
            (entry.stamp, entry.cover) = (stamp, Cover::Replaced);
        }
    }

    /// Updates the baseline with the current file at a path, so that the file is no longer reported as changed.
    pub(super) fn settle(&mut self, path: &str, stamp: FileStamp, content: Option<Vec<u8>>) {
        let cover = self.entries.get(path).map_or(Cover::None, |entry| entry.cover);
        // A file that was replaced from outside the sandbox keeps the replacement's identity.
        let stamp =
            self.entries.get(path).map(|entry| entry.stamp).filter(|_| cover != Cover::None).unwrap_or(stamp);
        self.insert(path.to_owned(), BaselineEntry { stamp, cover, content, config: None });
    }

    /// Returns the paths that must be read-only in the sandbox.
    pub(super) fn closed(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().filter(|(_, entry)| entry.cover != Cover::None).map(|(path, _)| path)
    }

    /// Records that a folder was moved to `path`.
    pub(super) fn moved(&mut self, path: &str) {
        self.moved.insert(path.to_owned());
    }
}

fn time(clock: ClockId) -> (i64, u32) {
    let now = clock_gettime(clock);
    (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Returns a file's content, or `None` if it is longer than `longest` or not a regular file.
pub(super) fn content(dir: &OwnedFd, name: &str, longest: usize) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(dir, &*raw(name), flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    let read = file.take(longest as u64 + 1).read_to_end(&mut content).ok()?;
    (read <= longest).then_some(content)
}
