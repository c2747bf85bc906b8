//! Where one supervisor keeps what it tells, as its launcher sees it.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{NAME, Untold, one};

/// Where what one sandbox tells is kept until it is on record. The launcher that asks for it says when it is.
#[derive(Debug)]
pub struct Record {
    place: PathBuf,
    name: String,
}

impl Record {
    /// A new one, by a name that nothing has; there is no file yet.
    pub fn new(state_dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { place: state_dir.join(NAME), name: format!("{}-{number}", new_name()) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How what is told is named for good: `number` counts it from 0.
    pub fn id(&self, number: usize) -> String {
        id(&self.name, number)
    }

    /// What was kept, of a supervisor that has not told its end. Nothing when there was nothing to tell, because the server never
    /// ran or all was searched. Waits for a supervisor that is just ending, but not longer than `patience`.
    pub fn read(&self, patience: Duration) -> Option<Untold> {
        one(self.place.join(&self.name), Instant::now() + patience)
    }

    /// It is on record, all of it.
    ///
    /// # Errors
    /// What the file system says; then it is told again at the next start.
    pub fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.place.join(&self.name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// How one of those that are kept by `name` is named.
pub(super) fn id(name: &str, number: usize) -> String {
    format!("{name}/{number}")
}

/// A name that no other process has.
pub(crate) fn new_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{now}", std::process::id())
}
