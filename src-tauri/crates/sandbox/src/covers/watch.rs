//! Watching names: what programs do to files that are covered, or to the folders on the way to them.
//!
//! - What is removed, or has another renamed over it, shows in the table of mounts as well, and sooner. What is renamed away
//!   shows here only.
//! - A folder that cannot be read with the person's rights is not watched. What is removed there, or has another renamed
//!   over it, still shows in the table of mounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{
        CWD,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    },
    io::Errno,
};

use super::traces::Traces;
use crate::place::open_plain;

/// A name in a folder: the folder's number, and the name.
pub(super) type Name = (i32, Vec<u8>);

/// Room for many events at once.
const ROOM: usize = 16 * 1024;

/// What is told of the names in a folder.
const TOLD: WatchFlags = WatchFlags::MOVED_FROM.union(WatchFlags::ONLYDIR).union(WatchFlags::MASK_ADD);

/// The same where it counts who has changed a file. What is written is told when it is closed.
const ALL_TOLD: WatchFlags = TOLD
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE);

/// The names that are watched.
#[derive(Debug)]
pub(super) struct Watch {
    queue: OwnedFd,
    folders: BTreeMap<i32, BTreeSet<Vec<u8>>>,
    traces: Traces,
}

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| limited(error, "fs.inotify.max_user_instances"))?;
        Ok(Self { queue, folders: BTreeMap::new(), traces: Traces::default() })
    }

    /// Watches a path's name, and keeps `traces` of what happens to it or not; none if it cannot be watched.
    pub(super) fn add(&mut self, path: &str, traces: bool) -> io::Result<Option<Name>> {
        let Some((folder, name)) = path.rsplit_once('/') else { return Ok(None) };
        let folder = if folder.is_empty() { "/" } else { folder };
        let place = match open_plain(CWD, folder) {
            Ok(place) => place,
            Err(Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(at(folder, error.into())),
        };
        let way = format!("/proc/self/fd/{}", place.as_raw_fd());
        match inotify::add_watch(&self.queue, way, if traces { ALL_TOLD } else { TOLD }) {
            Ok(number) => {
                self.folders.entry(number).or_default().insert(name.as_bytes().to_owned());
                Ok(Some((number, name.as_bytes().to_owned())))
            }
            Err(Errno::ACCESS) => Ok(None),
            Err(error) => Err(at(folder, limited(error, "fs.inotify.max_user_watches"))),
        }
    }

    /// Watches these names and no others any more.
    pub(super) fn keep<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        let before = std::mem::take(&mut self.folders);
        for (folder, name) in names {
            self.folders.entry(*folder).or_default().insert(name.clone());
        }
        for gone in before.keys().filter(|folder| !self.folders.contains_key(folder)) {
            // It may be gone with its folder.
            let _ = inotify::remove_watch(&self.queue, *gone);
        }
    }

    /// Takes in what has happened; whether a name was taken from what has it, or that is not known.
    pub(super) fn read(&mut self) -> bool {
        let mut room = vec![MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.queue, &mut room);
        let mut taken = false;
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => return taken,
                Err(Errno::INTR) => continue,
                Err(_) => {
                    self.traces.lose();
                    return true;
                }
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.traces.lose();
                taken = true;
            }
            let (Some(names), Some(name)) = (self.folders.get(&event.wd()), event.file_name()) else {
                continue;
            };
            let name = name.to_bytes();
            let is_watched = names.contains(name);
            self.traces.add(event.wd(), is_watched.then_some(name), event.events());
            taken |= is_watched && event.events().contains(ReadFlags::MOVED_FROM);
        }
    }

    /// Whether what has a name now is as programs outside have left it.
    pub(super) fn is_untouched(&self, name: &Name) -> bool {
        self.traces.is_untouched(name)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// A limit of the kernel's that a person can raise, by its name.
fn limited(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => io::Error::other(format!("the limit `{limit}` is reached: raise it")),
        other => other.into(),
    }
}

fn at(folder: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{folder}` cannot be watched: {error}"))
}
