//! Inotify queue for changes to file names.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use super::{folder_walk::explain_limit, name_text::from_os_bytes, paths::join};
use crate::nofollow::is_at_or_below;

/// Size of the event buffer in bytes.
const BUFFER_LEN: usize = 64 * 1024;
/// Maximum number of events returned by one read.
const MAX_EVENTS: usize = 4_096;

/// Events watched in every folder.
const FOLDER_EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// Additional events watched in folders that contain a covered name.
const COVERED_EVENTS: WatchFlags =
    WatchFlags::DELETE.union(WatchFlags::ATTRIB).union(WatchFlags::ONLYDIR).union(WatchFlags::MASK_ADD);
/// Events watched in folders above a covered or hidden path.
const ANCESTOR_EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// Events watched on files that are judged by their content.
const CONTENT_EVENTS: WatchFlags =
    WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE).union(WatchFlags::MASK_ADD);

/// Inotify event with the path that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameEvent {
    pub(super) path: String,
    pub(super) flags: ReadFlags,
}

/// Events returned by one read.
#[derive(Debug)]
pub(super) struct EventBatch {
    pub(super) events: Vec<NameEvent>,
    /// `true` if the kernel dropped events.
    pub(super) overflowed: bool,
    /// `true` if more events may be queued.
    pub(super) has_more: bool,
}

/// Inotify queue and the paths it watches.
#[derive(Debug)]
pub(super) struct EventQueue {
    queue: OwnedFd,
    paths: BTreeMap<i32, String>,
    descriptors: BTreeMap<String, i32>,
}

impl EventQueue {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| explain_limit(error, "fs.inotify.max_user_instances"))?;
        Ok(Self { queue, paths: BTreeMap::new(), descriptors: BTreeMap::new() })
    }

    /// Watches a folder for events on any entry.
    pub(super) fn watch_folder(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, FOLDER_EVENTS)
    }

    /// Watches a folder for events on its covered entries.
    pub(super) fn watch_covered(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, COVERED_EVENTS)
    }

    /// Watches a folder above a covered or hidden path, to detect when a component of that path is replaced.
    pub(super) fn watch_ancestor(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, ANCESTOR_EVENTS)
    }

    /// Watches a file for content changes.
    pub(super) fn watch_content(&mut self, path: &str, file: impl AsFd) -> io::Result<()> {
        self.add(path, file, CONTENT_EVENTS)
    }

    fn add(&mut self, path: &str, target: impl AsFd, flags: WatchFlags) -> io::Result<()> {
        let fd_path = format!("/proc/self/fd/{}", target.as_fd().as_raw_fd());
        match inotify::add_watch(&self.queue, fd_path, flags) {
            Ok(descriptor) => {
                if let Some(before) = self.paths.insert(descriptor, path.to_owned())
                    && before != path
                {
                    self.descriptors.remove(&before);
                }
                self.descriptors.insert(path.to_owned(), descriptor);
                Ok(())
            }
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => {
                let error = explain_limit(error, "fs.inotify.max_user_watches");
                Err(io::Error::new(error.kind(), format!("failed to watch `{path}`: {error}")))
            }
        }
    }

    /// Returns the number of watched folders and files at or below a path.
    pub(super) fn count(&self, path: &str) -> usize {
        self.watched_below(path).len()
    }

    /// Removes all watches at or below a path.
    pub(super) fn unwatch_below(&mut self, path: &str) {
        for path in self.watched_below(path) {
            self.remove(&path);
        }
    }

    /// Removes all watches of paths for which `is_needed` returns `false`.
    pub(super) fn retain(&mut self, is_needed: impl Fn(&str) -> bool) {
        let removed: Vec<String> = self.descriptors.keys().filter(|path| !is_needed(path)).cloned().collect();
        removed.iter().for_each(|path| self.remove(path));
    }

    fn watched_below(&self, path: &str) -> BTreeSet<String> {
        let from = self.descriptors.range(path.to_owned()..).map(|(found, _)| found);
        let near = from.take_while(|found| found.starts_with(path));
        near.filter(|found| is_at_or_below(found, path)).cloned().collect()
    }

    fn remove(&mut self, path: &str) {
        if let Some(descriptor) = self.descriptors.remove(path) {
            self.paths.remove(&descriptor);
            // Ignores the error: the kernel removes the watch when the folder is deleted.
            let _ = inotify::remove_watch(&self.queue, descriptor);
        }
    }

    /// Reads new events, in order.
    pub(super) fn read(&mut self) -> EventBatch {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_LEN];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let (mut events, mut removed): (Vec<NameEvent>, Vec<i32>) = (vec![], vec![]);
        let (mut overflowed, mut has_more) = (false, true);
        for _ in 0..MAX_EVENTS {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => {
                    has_more = false;
                    break;
                }
                Err(Errno::INTR) => continue,
                Err(_) => {
                    (overflowed, has_more) = (true, false);
                    break;
                }
            };
            overflowed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if event.events().contains(ReadFlags::IGNORED) {
                removed.push(event.wd());
                continue;
            }
            let Some(folder) = self.paths.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| from_os_bytes(name.to_bytes()));
            let path = name.map_or_else(|| folder.clone(), |name| join(folder, &name));
            let now = NameEvent { path, flags: event.events() };
            if events.last() != Some(&now) {
                events.push(now);
            }
        }
        for descriptor in removed {
            if let Some(path) = self.paths.remove(&descriptor)
                && self.descriptors.get(&path) == Some(&descriptor)
            {
                self.descriptors.remove(&path);
            }
        }
        EventBatch { events, overflowed, has_more }
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
