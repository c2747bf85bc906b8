//! What sandboxes found, kept in their state directory until it is on record.
//!
//! - A supervisor whose launcher asks for it keeps what it tells before it tells it, and the launcher removes that when it is on
//!   record. Other supervisors keep what they find when nobody is there to be told.
//! - INVARIANT: what is still being added to is locked by the supervisor that does, so that nobody takes a part for the whole.
//! - Its last line is [`Event::Exited`]; without that the supervisor did not come to its end, and what it had for writing, which
//!   it noted before the server could write there, was not searched.
//! - INVARIANT: an entry that cannot be read is told by its name and keeps none of the others from being told; none is waited
//!   for without a bound, and what may still be whole another time is not forgotten.

mod keeping;
mod record;

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock},
    io::Errno,
};

pub(crate) use keeping::Keeping;
use keeping::Line;
pub use record::Record;
pub(crate) use record::new_name;

use crate::control::{END_BOUND, Event};

/// Where it is kept.
const NAME: &str = "untold";

/// The most that is read of one entry.
const MOST_BYTES: u64 = 16 << 20;

/// The most bytes of paths that are told in one part: half of what one entry of the audit log has room for.
const MOST_TOLD: usize = 32 << 10;

/// How often a lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// What one sandbox found.
#[derive(Debug)]
pub struct Untold {
    /// By which name it is kept, unless it could not be read.
    name: Option<String>,
    /// What was kept, in the order it was found.
    events: Vec<Event>,
    /// What is to be told of the entry itself.
    problems: Vec<Event>,
    /// Where it is kept, unless it has to stay.
    path: Option<PathBuf>,
}

impl Untold {
    /// What is to be told, but for the first ones, and by which name each is known for good, where it is.
    pub fn after(&self, told: usize) -> impl Iterator<Item = (Option<String>, &Event)> {
        let kept = self.events.iter().enumerate().skip(told);
        let kept =
            kept.map(|(number, event)| (self.name.as_deref().map(|name| record::id(name, number)), event));
        let name = |number: usize| self.name.as_ref().map(|name| format!("{name}/end-{number}"));
        kept.chain(self.problems.iter().enumerate().map(move |(number, event)| (name(number), event)))
    }

    /// It is on record now. What could not be read, but may be another time, stays, and is told again then.
    ///
    /// # Errors
    /// What the file system says; then it is told again another time.
    pub fn forget(self) -> io::Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let forgotten = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        // Its supervisor may have taken it away.
        forgotten.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    fn unreadable(reason: String, path: Option<PathBuf>) -> Self {
        Self { name: None, events: vec![], problems: vec![Event::Unfinished { reason }], path }
    }
}

/// The entries there were at one instant.
#[derive(Debug)]
pub struct Entries(Vec<io::Result<PathBuf>>);

/// The entries of what the sandboxes of a state directory found and nobody may have put on record. Those of sandboxes that
/// start later are not among them.
///
/// # Errors
/// When they cannot be listed.
pub fn untold(state_dir: &Path) -> io::Result<Entries> {
    match fs::read_dir(state_dir.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Entries(vec![])),
        entries => Ok(Entries(entries?.map(|entry| Ok(entry?.path())).collect())),
    }
}

impl Entries {
    /// Whether there is nothing to be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they say. Waits for sandboxes that are still searched, for all of them together not longer than [`END_BOUND`]. An
    /// entry that cannot be read is an [`Event::Unfinished`] that names it.
    pub fn read(self) -> Vec<Untold> {
        self.read_within(END_BOUND)
    }

    fn read_within(self, bound: Duration) -> Vec<Untold> {
        let until = Instant::now() + bound;
        let told = self.0.into_iter().filter_map(|entry| match entry {
            Ok(path) => one(path, until),
            Err(problem) => {
                let reason = format!("not every record of a sandbox can be listed: {problem}");
                Some(Untold::unreadable(reason, None))
            }
        });
        told.collect()
    }
}

/// One entry, if it is still there.
fn one(path: PathBuf, until: Instant) -> Option<Untold> {
    let name = path.file_name().unwrap_or_default().to_owned();
    let of_it = |problem: &str| format!("the record {name:?} of a sandbox {problem}");
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Ok(found) if !found.is_file() => {
            return Some(Untold::unreadable(of_it("is not a regular file"), Some(path)));
        }
        Ok(_) | Err(_) => {}
    }
    let (bytes, all) = match read(&path, until) {
        Ok(read) => read,
        Err(problem) if problem.kind() == ErrorKind::NotFound => return None,
        Err(problem) if problem.kind() == ErrorKind::WouldBlock => {
            let reason = of_it("is still being written, and is told at the next start");
            return Some(Untold::unreadable(reason, None));
        }
        Err(problem) => return Some(Untold::unreadable(of_it(&format!("cannot be read: {problem}")), None)),
    };
    let Kept { events, writable, whole } = parse(&bytes);
    let mut problems = vec![];
    if !whole {
        problems
            .push(Event::Unfinished { reason: of_it("is damaged, and is told as far as it can be read") });
    }
    if !all {
        let reason = of_it(&format!("is longer than {MOST_BYTES} bytes, and is told only up to there"));
        problems.push(Event::Unfinished { reason });
    }
    if !all || !matches!(events.last(), Some(Event::Exited { .. })) {
        problems.extend(unsearched(writable));
    }
    Some(Untold { name: name.into_string().ok(), events, problems, path: Some(path) })
}

/// What was not searched, in as many parts as it takes for each of them to be told whole.
fn unsearched(writable: Vec<String>) -> Vec<Event> {
    let mut parts = vec![vec![]];
    let mut size = 0;
    for path in writable {
        size += path.len();
        match parts.last_mut() {
            Some(part) if size <= MOST_TOLD => part.push(path),
            Some(_) | None => {
                size = path.len();
                parts.push(vec![path]);
            }
        }
    }
    parts.into_iter().map(|writable| Event::Unsearched { writable }).collect()
}

/// What it holds, and whether that is all of it. Follows no link and waits for nothing but the lock.
fn read(path: &Path, until: Instant) -> io::Result<(Vec<u8>, bool)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|problem| match problem {
        // Said of a lock only.
        Errno::AGAIN => io::Error::other(problem),
        _ => problem.into(),
    })?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    lock(&file, until)?;
    let mut bytes = vec![];
    let size = file.metadata()?.len();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, size <= MOST_BYTES))
}

/// # Errors
/// [`ErrorKind::WouldBlock`] when it is not given until then.
fn lock(file: &File, until: Instant) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(TRY_EVERY),
            given => return Ok(given?),
        }
    }
}

/// What an entry says.
#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    writable: Vec<String>,
    /// Whether every line is one.
    whole: bool,
}

/// What its lines say. What follows the last line's end is none: it was not written whole.
fn parse(bytes: &[u8]) -> Kept {
    let mut kept = Kept { whole: true, ..Kept::default() };
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        match serde_json::from_slice(line) {
            Ok(Line::Event(event)) => kept.events.push(event),
            Ok(Line::Writable { writable }) => kept.writable.push(writable),
            Err(_) => kept.whole = false,
        }
    }
    kept
}

#[cfg(test)]
mod tests;
