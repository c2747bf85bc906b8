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
        AtFlags, CWD, Dir, FileType, OFlags, ResolveFlags, fstat,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        stat, statat,
    },
    io::Errno,
    process::getuid,
};

use crate::{
    autostart::name_text::{from_os_bytes, to_os_str},
    folder_listing::open_for_listing,
    nofollow::{is_at_or_below, open_nofollow},
};

/// Size of the event buffer in bytes.
const BUFFER_LEN: usize = 64 * 1024;
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
    descriptors: BTreeMap<String, i32>,
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
    EventsDropped,
}

/// Reason a folder cannot be watched.
#[derive(Debug)]
pub(super) enum FolderError {
    /// The folder does not exist, or belongs to another user and is inaccessible from the sandbox.
    Inaccessible,
    /// The folder can be entered but not listed.
    NotListable,
    /// Another error, as a message for the user.
    Failed(String),
}

impl WatchedFolders {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| explain_limit(error, "fs.inotify.max_user_instances"))?;
        Ok(Self { queue, paths: BTreeMap::new(), descriptors: BTreeMap::new() })
    }

    /// Watches a folder, then lists it.
    pub(super) fn watch(&mut self, path: &str) -> Result<FolderListing, FolderError> {
        let dir = open_folder(path)?;
        let fd_path = format!("/proc/self/fd/{}", dir.as_raw_fd());
        match inotify::add_watch(&self.queue, fd_path, WATCHED) {
            Ok(descriptor) => {
                if let Some(before) =
                    self.paths.insert(descriptor, path.to_owned()).filter(|before| before != path)
                {
                    self.descriptors.remove(&before);
                }
                self.descriptors.insert(path.to_owned(), descriptor);
            }
            Err(error) => {
                let error = explain_limit(error, "fs.inotify.max_user_watches");
                return Err(FolderError::Failed(format!("failed to watch `{path}`: {error}")));
            }
        }
        list(path, dir)
    }

    /// Removes those watches at or below `path` for which `is_needed` returns `false`.
    pub(super) fn unwatch_below(&mut self, path: &str, is_needed: impl Fn(&str) -> bool) {
        let near = self.descriptors.range(path.to_owned()..).take_while(|(found, _)| found.starts_with(path));
        let unneeded: Vec<String> = near
            .map(|(found, _)| found)
            .filter(|found| is_at_or_below(found, path) && !is_needed(found))
            .cloned()
            .collect();
        for path in unneeded {
            if let Some(descriptor) = self.descriptors.remove(&path) {
                self.paths.remove(&descriptor);
                // Ignores the error: the kernel removes the watch when the folder is deleted.
                let _ = inotify::remove_watch(&self.queue, descriptor);
            }
        }
    }

    /// Reads new events, in order.
    pub(super) fn read(&mut self) -> Vec<FolderEvent> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_LEN];
        let mut events = Vec::new();
        let mut removed = Vec::new();
        let mut reader = Reader::new(&self.queue, &mut buffer);
        for _ in 0..MAX_EVENTS {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => {
                    events.push(FolderEvent::EventsDropped);
                    break;
                }
            };
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                events.push(FolderEvent::EventsDropped);
            }
            if flags.contains(ReadFlags::IGNORED) {
                removed.push(event.wd());
                continue;
            }
            let (Some(folder), Some(name)) = (self.paths.get(&event.wd()), event.file_name()) else {
                continue;
            };
            let path = join_path(folder, name.to_bytes());
            if flags.contains(ReadFlags::ISDIR) {
                events.push(FolderEvent::Folder(path));
            } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                events.push(FolderEvent::File(path));
            }
        }
        for descriptor in removed {
            if let Some(path) = self.paths.remove(&descriptor)
                && self.descriptors.get(&path) == Some(&descriptor)
            {
                self.descriptors.remove(&path);
            }
        }
        events
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
    let found = open_nofollow(CWD, &*to_os_str(path)).and_then(fstat);
    found.ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

fn is_special_type(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket()
}

fn open_folder(path: &str) -> Result<OwnedFd, FolderError> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match open_for_listing(CWD, &to_os_str(path), OFlags::NOFOLLOW, resolve) {
        Ok(dir) => Ok(dir),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(FolderError::Inaccessible),
        Err(Errno::ACCESS | Errno::PERM) => {
            let is_enterable = open_nofollow(CWD, &*to_os_str(&format!("{path}/."))).is_ok();
            let is_own = stat(&*to_os_str(path)).is_ok_and(|stat| stat.st_uid == getuid().as_raw());
            Err(if is_enterable || is_own { FolderError::NotListable } else { FolderError::Inaccessible })
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
            listing.add(path, name, kind);
        }
    }
    // Some file systems do not store file types in directory entries.
    for name in unknown {
        let found =
            statat(entries.fd().map_err(failed)?, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
        if let Ok(stat) = found {
            listing.add(path, &name, FileType::from_raw_mode(stat.st_mode));
        }
    }
    Ok(listing)
}

impl FolderListing {
    fn add(&mut self, folder: &str, name: &[u8], kind: FileType) {
        if kind.is_dir() {
            self.folders.push(join_path(folder, name));
        } else if is_special_type(kind) {
            self.special.push(join_path(folder, name));
        }
    }
}

fn join_path(folder: &str, name: &[u8]) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), from_os_bytes(name))
}

/// Converts an error. If a kernel limit caused it, the message names the limit to raise.
fn explain_limit(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => io::Error::other(format!(
            "limit `{limit}` reached; raise it with `sudo sysctl {limit}=...`, or close other programs that watch files"
        )),
        other => other.into(),
    }
}
