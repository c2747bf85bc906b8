//! Removes the oldest files of a log once they exceed the retention time.
//!
//! - INVARIANT: a removal is recorded and synced before the file is removed. If the process is killed in between, the
//!   next check removes the file.

use crate::error::AuditError;
use crate::tail;
use crate::volumes::{self, Volume};
use crate::{Entry, Event, LogOptions, Removed, search};
use serde::Deserialize;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Removes closed files whose last entry exceeds the retention time, oldest first.
///
/// # Errors
/// Returns an error if a file cannot be accessed or removed, or if its removal cannot be recorded.
pub(super) async fn remove_old<F>(options: &LogOptions, record: impl Fn(Entry) -> F) -> io::Result<()>
where
    F: Future<Output = Result<u64, AuditError>>,
{
    let cutoff =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(options.retention);
    while let Some((first, path, removed)) = oldest_expired(options, cutoff)? {
        let mut entry = Entry::new(
            Event::Retention,
            format!(
                "the entries up to {} were removed, because they are older than the retention time",
                removed.entries
            ),
        );
        entry.removed = Some(removed);
        record(entry).await.map_err(|e| io::Error::other(e.to_string()))?;
        std::fs::remove_file(path)?;
        search::forget(&options.dir, first);
    }
    Ok(())
}

/// Returns the oldest closed file and its end position if its last entry exceeds the retention time.
fn oldest_expired(options: &LogOptions, cutoff: Duration) -> io::Result<Option<(u64, PathBuf, Removed)>> {
    #[derive(Deserialize)]
    struct Time {
        timestamp: u64,
    }
    let Some((first, path)) = volumes::closed(&options.dir)?.into_iter().next() else { return Ok(None) };
    let volume = Volume::open(path, first)?;
    let time = tail::last_line(&volume.file)?.and_then(|line| serde_json::from_slice::<Time>(&line).ok());
    let end =
        volume.end_position()?.filter(|_| time.is_some_and(|t| u128::from(t.timestamp) < cutoff.as_millis()));
    Ok(end.map(|end| (first, volume.path, Removed { entries: end.entries, link: end.head })))
}
