//! What sandboxes found at their end when nobody was there to be told: kept in their state directory until somebody asks.
//!
//! - INVARIANT: what is still being added to is locked by the supervisor that does, so that nobody takes a part for the whole.
//! - Its last line is [`Event::Exited`]; without that the supervisor did not come to its end.
//! - INVARIANT: an entry that cannot be read is told by its name and keeps none of the others from being told; none is waited
//!   for without a bound, and what may still be whole another time is not forgotten.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock},
    io::Errno,
};

use crate::{
    control::{END_BOUND, Event},
    state::StateDir,
};

/// Where it is kept.
const NAME: &str = "untold";

/// The most that is read of one entry.
const MOST_BYTES: u64 = 16 << 20;

/// How often a lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// What one supervisor keeps.
#[derive(Debug)]
pub(crate) struct Keeping(File);

impl Keeping {
    pub(crate) fn begin(state: &StateDir) -> io::Result<Self> {
        Self::at(&new_path(state)?)
    }

    fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self(file))
    }

    pub(crate) fn add(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}

/// A name that nothing has.
fn new_path(state: &StateDir) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(state.below(NAME)?.join(format!("{}-{now}", std::process::id())))
}

/// That a supervisor would not come to its end if it were killed now: for as long as this value is there, and after a kill
/// until it is told.
#[derive(Debug)]
pub(crate) struct Unsearched {
    path: PathBuf,
    _keeping: Keeping,
}

impl Unsearched {
    pub(crate) fn begin(state: &StateDir) -> io::Result<Self> {
        let path = new_path(state)?;
        Ok(Self { _keeping: Keeping::at(&path)?, path })
    }
}

impl Drop for Unsearched {
    fn drop(&mut self) {
        // What stays is told once more than is needed.
        let _ = fs::remove_file(&self.path);
    }
}

/// What one sandbox found.
#[derive(Debug)]
pub struct Untold {
    /// In the order it was found.
    pub events: Vec<Event>,
    /// Where it is kept, unless it has to stay.
    path: Option<PathBuf>,
}

impl Untold {
    /// It was told now. What could not be read, but may be another time, stays, and is told again then.
    ///
    /// # Errors
    /// What the file system says; then it is told again another time.
    pub fn forget(self) -> io::Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        if fs::symlink_metadata(&path)?.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
    }

    fn unfinished(reason: String, path: Option<PathBuf>) -> Self {
        Self { events: vec![Event::Unfinished { reason }], path }
    }
}

/// What the sandboxes of a state directory found that nobody was told. Waits for those that are still looking, for all of
/// them together not longer than [`END_BOUND`]. An entry that cannot be read is an [`Event::Unfinished`] that names it.
///
/// # Errors
/// When the entries cannot be listed.
pub fn untold(state_dir: &Path) -> io::Result<Vec<Untold>> {
    untold_within(state_dir, END_BOUND)
}

fn untold_within(state_dir: &Path, bound: Duration) -> io::Result<Vec<Untold>> {
    let entries = match fs::read_dir(state_dir.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let until = Instant::now() + bound;
    let told = entries.map(|entry| match entry {
        Ok(entry) => one(entry.path(), until),
        Err(problem) => {
            Untold::unfinished(format!("not every record of a sandbox can be listed: {problem}"), None)
        }
    });
    Ok(told.collect())
}

fn one(path: PathBuf, until: Instant) -> Untold {
    let name = path.file_name().unwrap_or_default().to_owned();
    let of_it = |problem: &str| format!("the record {name:?} of a sandbox {problem}");
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Untold::unfinished(of_it("is not a regular file"), Some(path));
    }
    let (bytes, all) = match read(&path, until) {
        Ok(read) => read,
        Err(problem) if problem.kind() == ErrorKind::WouldBlock => {
            return Untold::unfinished(of_it("is still being written, and is told at the next start"), None);
        }
        Err(problem) => return Untold::unfinished(of_it(&format!("cannot be read: {problem}")), None),
    };
    let (events, whole) = parse(&bytes);
    let mut untold = Untold { events, path: Some(path) };
    let reason = if !whole {
        of_it("is damaged, and is told only up to there")
    } else if !all {
        of_it(&format!("is longer than {MOST_BYTES} bytes, and is told only up to there"))
    } else if !matches!(untold.events.last(), Some(Event::Exited { .. })) {
        "it ended before everything was searched for new files that start programs".to_owned()
    } else {
        return untold;
    };
    untold.events.push(Event::Unfinished { reason });
    untold
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

/// The events up to the first line that is none, and whether there is no such line. What follows the last line's end is
/// none: it was not written whole.
fn parse(bytes: &[u8]) -> (Vec<Event>, bool) {
    let mut events = vec![];
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        match serde_json::from_slice(line) {
            Ok(event) => events.push(event),
            Err(_) => return (events, false),
        }
    }
    (events, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_until_it_is_forgotten_and_a_missing_end_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(untold(&state).unwrap().is_empty());
        let opened = StateDir::open(state.to_str().unwrap(), rustix::process::getuid().as_raw()).unwrap();
        let moved = Event::Quarantined { path: "/p/.envrc".into(), moved_to: "/q/.envrc".into() };
        let exited = Event::Exited { status: 137 };
        let mut keeping = Keeping::begin(&opened).unwrap();
        keeping.add(&moved).unwrap();
        keeping.add(&exited).unwrap();
        drop(keeping);
        let one = |state: &Path| {
            let mut all = untold(state).unwrap();
            assert_eq!(all.len(), 1);
            all.remove(0)
        };
        assert_eq!(one(&state).events, [moved.clone(), exited]);
        one(&state).forget().unwrap();
        assert!(untold(&state).unwrap().is_empty());

        let mut keeping = Keeping::begin(&opened).unwrap();
        keeping.add(&moved).unwrap();
        keeping.0.write_all(b"{\"event\":\"quar").unwrap();
        drop(keeping);
        let cut = one(&state).events;
        assert_eq!(cut.first(), Some(&moved));
        assert!(
            matches!(cut.as_slice(), [_, Event::Unfinished { reason }] if reason.contains("before everything")),
            "{cut:?}"
        );
    }

    /// A state directory, and a record in it that is whole.
    fn with_a_whole_one(dir: &Path) -> (PathBuf, StateDir) {
        let state = dir.join("state");
        let opened = StateDir::open(state.to_str().unwrap(), rustix::process::getuid().as_raw()).unwrap();
        Keeping::begin(&opened).unwrap().add(&Event::Exited { status: 7 }).unwrap();
        (state, opened)
    }

    fn reasons(all: &[Untold]) -> Vec<&str> {
        let events = all.iter().flat_map(|one| &one.events);
        events
            .filter_map(|e| if let Event::Unfinished { reason } = e { Some(&**reason) } else { None })
            .collect()
    }

    #[test]
    fn an_entry_that_is_no_record_is_named_and_keeps_no_other_from_being_told() {
        type Make = fn(&Path);
        let bad: [(&str, Make, &str); 6] = [
            ("folder", |path| fs::create_dir(path).unwrap(), "not a regular file"),
            ("fifo", |path| fifo(path), "not a regular file"),
            ("dangling", |path| std::os::unix::fs::symlink("nowhere", path).unwrap(), "not a regular file"),
            ("link", |path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(), "not a regular file"),
            ("bytes", |path| fs::write(path, b"\xff\xfe\n").unwrap(), "damaged"),
            ("long", |path| File::create(path).unwrap().set_len(MOST_BYTES + 1).unwrap(), "longer than"),
        ];
        for (name, make, why) in bad {
            let dir = tempfile::tempdir().unwrap();
            let (state, _) = with_a_whole_one(dir.path());
            make(&state.join(NAME).join(name));
            let all = untold(&state).unwrap();
            assert!(all.iter().any(|one| one.events == [Event::Exited { status: 7 }]), "{name}: {all:?}");
            let said = reasons(&all);
            assert!(matches!(said[..], [one] if one.contains(name) && one.contains(why)), "{name}: {said:?}");
            all.into_iter().for_each(|one| one.forget().unwrap());
            assert!(untold(&state).unwrap().is_empty(), "{name}");
        }
    }

    fn fifo(path: &Path) {
        use rustix::fs::{CWD, FileType, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn one_that_stays_locked_is_passed_over_and_told_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (state, opened) = with_a_whole_one(dir.path());
        let mut keeping = Keeping::begin(&opened).unwrap();
        let all = untold_within(&state, Duration::ZERO).unwrap();
        assert!(all.iter().any(|one| one.events == [Event::Exited { status: 7 }]), "{all:?}");
        assert!(matches!(reasons(&all)[..], [one] if one.contains("still being written")), "{all:?}");
        all.into_iter().for_each(|one| one.forget().unwrap());

        keeping.add(&Event::Exited { status: 8 }).unwrap();
        drop(keeping);
        let all = untold(&state).unwrap();
        assert!(matches!(&all[..], [one] if one.events == [Event::Exited { status: 8 }]), "{all:?}");
    }
}
