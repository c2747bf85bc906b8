//! Watched folders and the inotify events in them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        openat2, stat, statat,
    },
    io::Errno,
    process::getuid,
};

use crate::{
    autostart::name_text::{raw, text},
    place::{is_at_or_below, open_plain_end},
};

/// Size of the event buffer in bytes.
const ROOM: usize = 64 * 1024;
/// Maximum number of events returned by one read.
const MAX_EVENTS: usize = 4_096;

/// Events watched in every folder. A mode change can make a folder listable.
const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR);

/// Watched folders, indexed by inotify watch.
#[derive(Debug)]
pub(super) struct WatchedFolders {
    queue: OwnedFd,
    paths: BTreeMap<i32, String>,
    numbers: BTreeMap<String, i32>,
}

/// Entries of a folder that matter for masking.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderListing {
    pub(super) folders: Vec<String>,
    /// Paths of pipes and sockets.
    pub(super) special: Vec<String>,
    /// Number of entries of any kind.
    pub(super) names: usize,
}

/// Event in a watched folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FolderEvent {
    /// A folder at this path was created, moved or removed, or may have become listable.
    Folder(String),
    /// A file that is not a folder was created at or moved to this path.
    File(String),
    /// The kernel dropped events.
    Lost,
}

/// Reason a folder cannot be watched.
#[derive(Debug)]
pub(super) enum FolderError {
    /// The folder does not exist, or belongs to another user and is inaccessible from the sandbox.
    OutOfReach,
    /// The folder can be entered but not listed.
    Closed,
    /// Another error, as a message for the user.
    Failed(String),
}

impl WatchedFolders {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| limited(error, "fs.inotify.max_user_instances"))?;
        Ok(Self { queue, paths: BTreeMap::new(), numbers: BTreeMap::new() })
    }

    /// Watches a folder, then lists it.
    pub(super) fn watch(&mut self, path: &str) -> Result<FolderListing, FolderError> {
        let dir = open_folder(path)?;
        let way = format!("/proc/self/fd/{}", dir.as_raw_fd());
        match inotify::add_watch(&self.queue, way, WATCHED) {
            Ok(number) => {
                if let Some(before) =
                    self.paths.insert(number, path.to_owned()).filter(|before| before != path)
                {
                    self.numbers.remove(&before);
                }
                self.numbers.insert(path.to_owned(), number);
            }
            Err(error) => {
                let error = limited(error, "fs.inotify.max_user_watches");
                return Err(FolderError::Failed(format!("failed to watch `{path}`: {error}")));
            }
        }
        list(path, dir)
    }

    /// Removes those watches at or below `path` for which `is_needed` returns `false`.
    pub(super) fn forget(&mut self, path: &str, is_needed: impl Fn(&str) -> bool) {
        let near = self.numbers.range(path.to_owned()..).take_while(|(found, _)| found.starts_with(path));
        let gone: Vec<String> = near
            .map(|(found, _)| found)
            .filter(|found| is_at_or_below(found, path) && !is_needed(found))
            .cloned()
            .collect();
        for path in gone {
            if let Some(number) = self.numbers.remove(&path) {
                self.paths.remove(&number);
                // Ignores the error: the kernel removes the watch when the folder is deleted.
                let _ = inotify::remove_watch(&self.queue, number);
            }
        }
    }

    /// Reads new events, in order.
    pub(super) fn read(&mut self) -> Vec<FolderEvent> {
        let mut room = vec![MaybeUninit::uninit(); ROOM];
        let mut happened = Vec::new();
        let mut left = Vec::new();
        let mut events = Reader::new(&self.queue, &mut room);
        for _ in 0..MAX_EVENTS {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => {
                    happened.push(FolderEvent::Lost);
                    break;
                }
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                happened.push(FolderEvent::Lost);
            }
            if what.contains(ReadFlags::IGNORED) {
                left.push(event.wd());
                continue;
            }
            let (Some(folder), Some(name)) = (self.paths.get(&event.wd()), event.file_name()) else {
                continue;
            };
            let path = joined(folder, name.to_bytes());
            if what.contains(ReadFlags::ISDIR) {
                happened.push(FolderEvent::Folder(path));
            } else if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                happened.push(FolderEvent::File(path));
            }
        }
        for number in left {
            if let Some(path) = self.paths.remove(&number)
                && self.numbers.get(&path) == Some(&number)
            {
                self.numbers.remove(&path);
            }
        }
        happened
    }
}

impl AsFd for WatchedFolders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// Returns `true` if a pipe or socket exists at the path.
pub(crate) fn is_special(path: &str) -> bool {
    file_type(path).is_some_and(is_special_type)
}

/// Returns `true` if a folder exists at the path.
pub(crate) fn is_folder(path: &str) -> bool {
    file_type(path).is_some_and(|kind| kind.is_dir())
}

/// Returns `true` if a socket exists at the path.
pub(super) fn is_socket(path: &str) -> bool {
    file_type(path).is_some_and(|kind| kind.is_socket())
}

fn file_type(path: &str) -> Option<FileType> {
    let found = open_plain_end(CWD, &*raw(path)).and_then(fstat);
    found.ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

fn is_special_type(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket()
}

fn open_folder(path: &str) -> Result<OwnedFd, FolderError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, &*raw(path), flags, Mode::empty(), resolve) {
        Ok(dir) => Ok(dir),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(FolderError::OutOfReach),
        Err(Errno::ACCESS | Errno::PERM) => {
            let passes = open_plain_end(CWD, &*raw(&format!("{path}/."))).is_ok();
            let is_own = stat(&*raw(path)).is_ok_and(|stat| stat.st_uid == getuid().as_raw());
            Err(if passes || is_own { FolderError::Closed } else { FolderError::OutOfReach })
        }
        Err(error) => Err(FolderError::Failed(format!("failed to list `{path}`: {error}"))),
    }
}

fn list(path: &str, dir: OwnedFd) -> Result<FolderListing, FolderError> {
    let failed = |error: Errno| FolderError::Failed(format!("failed to list `{path}`: {error}"));
    let mut listing = FolderListing::default();
    let (mut entries, mut unknown) = (Dir::new(dir).map_err(failed)?, Vec::new());
    while let Some(entry) = entries.read() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        listing.names += 1;
        let kind = entry.file_type();
        if kind == FileType::Unknown {
            unknown.push(name.to_owned());
        } else {
            listing.note(path, name, kind);
        }
    }
    // Some file systems do not store file types in directory entries.
    for name in unknown {
        let found =
            statat(entries.fd().map_err(failed)?, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
        if let Ok(stat) = found {
            listing.note(path, &name, FileType::from_raw_mode(stat.st_mode));
        }
    }
    Ok(listing)
}

impl FolderListing {
    fn note(&mut self, folder: &str, name: &[u8], kind: FileType) {
        if kind.is_dir() {
            self.folders.push(joined(folder, name));
        } else if is_special_type(kind) {
            self.special.push(joined(folder, name));
        }
    }
}

fn joined(folder: &str, name: &[u8]) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), text(name))
}

/// Converts an error. If a kernel limit caused it, the message names the limit to raise.
fn limited(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => io::Error::other(format!(
            "limit `{limit}` reached; raise it with `sudo sysctl {limit}=...`, or close other programs that watch files"
        )),
        other => other.into(),
    }
}
