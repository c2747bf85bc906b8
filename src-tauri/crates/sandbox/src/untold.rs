//! What sandboxes found at their end when nobody was there to be told: kept in their state directory until somebody asks.
//!
//! - INVARIANT: what is still being added to is locked by the supervisor that does, so that nobody takes a part for the whole.
//! - Its last line is [`Event::Exited`]; without that the supervisor did not come to its end.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};

use crate::{control::Event, state::StateDir};

/// Where it is kept.
const NAME: &str = "untold";

/// What one supervisor keeps.
#[derive(Debug)]
pub(crate) struct Keeping(File);

impl Keeping {
    pub(crate) fn begin(state: &StateDir) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = state.below(NAME)?.join(format!("{}-{now}", std::process::id()));
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

/// What one sandbox found.
#[derive(Debug)]
pub struct Untold {
    /// In the order it was found.
    pub events: Vec<Event>,
    path: PathBuf,
}

impl Untold {
    /// It was told now.
    ///
    /// # Errors
    /// What the file system says; then it is told again another time.
    pub fn forget(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

/// What the sandboxes of a state directory found that nobody was told. Waits for those that are still looking, which is not
/// for long: see [`END_BOUND`](crate::END_BOUND).
///
/// # Errors
/// What the file system says.
pub fn untold(state_dir: &Path) -> io::Result<Vec<Untold>> {
    let entries = match fs::read_dir(state_dir.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    entries.map(|entry| read(entry?.path())).collect()
}

fn read(path: PathBuf) -> io::Result<Untold> {
    let file = File::open(&path)?;
    flock(&file, FlockOperation::LockShared)?;
    let text = io::read_to_string(file)?;
    // A line that was not written whole was followed by nothing.
    let mut events: Vec<Event> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    if !matches!(events.last(), Some(Event::Exited { .. })) {
        let reason = "it ended before everything was searched for new files that start programs".to_owned();
        events.push(Event::Unfinished { reason });
    }
    Ok(Untold { events, path })
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
}
