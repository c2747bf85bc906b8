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

use super::{folder_walk::limited, name_text::text, paths::join};
use crate::place::is_at_or_below;

/// Size of the event buffer in bytes.
const ROOM: usize = 64 * 1024;
/// Maximum number of events returned by one read.
const MAX_EVENTS: usize = 4_096;

/// Events watched in every folder.
const FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// Additional events watched in folders that contain a covered name.
const COVERED: WatchFlags =
    WatchFlags::DELETE.union(WatchFlags::ATTRIB).union(WatchFlags::ONLYDIR).union(WatchFlags::MASK_ADD);
/// Events watched in folders above a covered or hidden path.
const AROUND: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// Events watched on files that are judged by their content.
const CONTENT: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE).union(WatchFlags::MASK_ADD);

/// Inotify event with the path that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameEvent {
    pub(super) path: String,
    pub(super) what: ReadFlags,
}

/// Events returned by one read.
#[derive(Debug)]
pub(super) struct EventBatch {
    pub(super) happened: Vec<NameEvent>,
    /// `true` if the kernel dropped events.
    pub(super) lost: bool,
    /// `true` if more events may be queued.
    pub(super) more: bool,
}

/// Inotify queue and the paths it watches.
#[derive(Debug)]
pub(super) struct EventQueue {
    queue: OwnedFd,
    paths: BTreeMap<i32, String>,
    numbers: BTreeMap<String, i32>,
}

impl EventQueue {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| limited(error, "fs.inotify.max_user_instances"))?;
        Ok(Self { queue, paths: BTreeMap::new(), numbers: BTreeMap::new() })
    }

    /// Watches a folder for events on any entry.
    pub(super) fn folder(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, FOLDER)
    }

    /// Watches a folder for events on its covered entries.
    pub(super) fn covered(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, COVERED)
    }

    /// Watches a folder above a covered or hidden path, to detect when a component of that path is replaced.
    pub(super) fn around(&mut self, path: &str, dir: &OwnedFd) -> io::Result<()> {
        self.add(path, dir, AROUND)
    }

    /// Watches a file for content changes.
    pub(super) fn content(&mut self, path: &str, file: impl AsFd) -> io::Result<()> {
        self.add(path, file, CONTENT)
    }

    fn add(&mut self, path: &str, place: impl AsFd, what: WatchFlags) -> io::Result<()> {
        let way = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
        match inotify::add_watch(&self.queue, way, what) {
            Ok(number) => {
                if let Some(before) = self.paths.insert(number, path.to_owned())
                    && before != path
                {
                    self.numbers.remove(&before);
                }
                self.numbers.insert(path.to_owned(), number);
                Ok(())
            }
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => {
                let error = limited(error, "fs.inotify.max_user_watches");
                Err(io::Error::new(error.kind(), format!("failed to watch `{path}`: {error}")))
            }
        }
    }

    /// Returns the number of watched folders and files at or below a path.
    pub(super) fn count(&self, path: &str) -> usize {
        self.below(path).len()
    }

    /// Removes all watches at or below a path.
    pub(super) fn forget(&mut self, path: &str) {
        for path in self.below(path) {
            self.remove(&path);
        }
    }

    /// Removes all watches of paths for which `is_needed` returns `false`.
    pub(super) fn keep(&mut self, is_needed: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self.numbers.keys().filter(|path| !is_needed(path)).cloned().collect();
        gone.iter().for_each(|path| self.remove(path));
    }

    fn below(&self, path: &str) -> BTreeSet<String> {
        let from = self.numbers.range(path.to_owned()..).map(|(found, _)| found);
        let near = from.take_while(|found| found.starts_with(path));
        near.filter(|found| is_at_or_below(found, path)).cloned().collect()
    }

    fn remove(&mut self, path: &str) {
        if let Some(number) = self.numbers.remove(path) {
            self.paths.remove(&number);
            // Ignores the error: the kernel removes the watch when the folder is deleted.
            let _ = inotify::remove_watch(&self.queue, number);
        }
    }

    /// Reads new events, in order.
    pub(super) fn read(&mut self) -> EventBatch {
        let mut room = vec![MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.queue, &mut room);
        let (mut happened, mut gone): (Vec<NameEvent>, Vec<i32>) = (vec![], vec![]);
        let (mut lost, mut more) = (false, true);
        for _ in 0..MAX_EVENTS {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => {
                    more = false;
                    break;
                }
                Err(Errno::INTR) => continue,
                Err(_) => {
                    (lost, more) = (true, false);
                    break;
                }
            };
            lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if event.events().contains(ReadFlags::IGNORED) {
                gone.push(event.wd());
                continue;
            }
            let Some(folder) = self.paths.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| text(name.to_bytes()));
            let path = name.map_or_else(|| folder.clone(), |name| join(folder, &name));
            let now = NameEvent { path, what: event.events() };
            if happened.last() != Some(&now) {
                happened.push(now);
            }
        }
        for number in gone {
            if let Some(path) = self.paths.remove(&number)
                && self.numbers.get(&path) == Some(&number)
            {
                self.numbers.remove(&path);
            }
        }
        EventBatch { happened, lost, more }
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
