//! Stored state of the export: the position in the log, counters, and the last failure.
//!
//! - An unreadable state is replaced. The entries within the backlog limit are then sent again with the same ids.

use ironcurtain_audit::{Follower, LogPosition, LostRange};
use ironcurtain_paths::{atomic_file, bounded_read};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of lost ranges kept until they are reported. Further losses extend the last range.
const MAX_RANGES: usize = 100;

/// State of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportState {
    /// Position after the last entry that was accepted by the collector or dropped.
    #[serde(rename = "place")]
    pub position: LogPosition,
    /// Number of entries that the collector accepted.
    pub sent: u64,
    /// Number of entries that were not sent, because they exceeded the backlog limit or are missing.
    pub dropped: u64,
    /// Number of entries that the collector rejected permanently.
    pub refused: u64,
    /// Time of the last success, in milliseconds since the Unix epoch.
    pub last_success: Option<u64>,
    /// Description of the failure since the last success, or `None` if there was no failure.
    pub failure: Option<String>,
    /// Ranges of unsent entries that have not been reported yet.
    pub lost: Vec<LostRange>,
    /// Number of log entries covered by the newest signed head that was sent.
    pub head: u64,
}

/// Error returned when the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read.
    #[error("failed to read the export's state: {0}")]
    Read(#[from] io::Error),
    /// The log cannot be read.
    #[error("failed to read the record: {0}")]
    Log(io::Error),
    /// The file is malformed.
    #[error("the export's state is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

impl ExportState {
    /// Creates the state of an export that starts at this position.
    #[must_use]
    pub fn starting_at(position: LogPosition) -> Self {
        Self {
            position,
            sent: 0,
            dropped: 0,
            refused: 0,
            last_success: None,
            failure: None,
            lost: Vec::new(),
            head: 0,
        }
    }

    /// Reads a state. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns [`StateError`] if the file cannot be read or is malformed.
    pub fn read(file: &Path) -> Result<Option<Self>, StateError> {
        let Some(text) = bounded_read::read_text(file)? else { return Ok(None) };
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// Reads an export's state. If the file does not exist, creates and stores a state that starts after the newest
    /// entry. Replaces a damaged state with a state that sends the newest entries again, up to the limit. Blocks.
    ///
    /// # Errors
    /// Returns [`StateError::Log`] if the log cannot be read.
    pub fn open(file: &Path, log: &Path, limit: u64) -> Result<Self, StateError> {
        let position = match Self::read(file) {
            Ok(Some(state)) => return Ok(state),
            Ok(None) => LogPosition::end(log),
            Err(_) => position_within_backlog(log, limit),
        };
        let state = Self::starting_at(position.map_err(StateError::Log)?);
        // An error, such as a full disk, is ignored, because the position is stored later.
        let _ = state.write(file);
        Ok(state)
    }

    /// Writes the state and syncs the file. Blocks.
    ///
    /// # Errors
    /// Returns an error if writing fails. The file then keeps the previous state.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        atomic_file::replace(file, &serde_json::to_string(self)?)
    }

    /// Drops the entries between the current position and `position`.
    pub(crate) fn drop_until(&mut self, position: LogPosition) {
        let range = LostRange { after: self.position.written.clone(), until: position.written.clone() };
        self.position = position;
        self.record_loss(range);
    }

    /// Records a range of unsent entries. Merges adjacent ranges.
    pub(crate) fn record_loss(&mut self, range: LostRange) {
        self.dropped += range.until.entries.saturating_sub(range.after.entries);
        let is_full = self.lost.len() >= MAX_RANGES;
        match self.lost.last_mut() {
            Some(last) if last.until == range.after || is_full => last.until = range.until,
            Some(_) | None => self.lost.push(range),
        }
    }
}

/// Writes the state without blocking the runtime.
///
/// - An older state never replaces a newer one, even if a write was cancelled.
/// - Dropping the writer prevents later writes so that the file can be removed.
#[derive(Debug)]
pub(crate) struct StateWriter {
    file: PathBuf,
    count: u64,
    /// Number of the newest state that was written. Locked during each write.
    newest_written: Arc<Mutex<u64>>,
}

impl StateWriter {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, count: 0, newest_written: Arc::default() }
    }

    /// Stores a state. A failure, such as a full disk, only means that entries are sent again after a restart.
    pub(crate) async fn write(&mut self, state: ExportState) {
        self.count += 1;
        let (number, newest_written, file) = (self.count, self.newest_written.clone(), self.file.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut newest_written = newest_written.lock().unwrap_or_else(PoisonError::into_inner);
            if number > *newest_written && state.write(&file).is_ok() {
                *newest_written = number;
            }
        });
        // This fails only while the runtime is shutting down.
        let _ = written.await;
    }
}

impl Drop for StateWriter {
    fn drop(&mut self) {
        *self.newest_written.lock().unwrap_or_else(PoisonError::into_inner) = u64::MAX;
    }
}

/// Returns the oldest position that is followed by at most `limit` bytes.
fn position_within_backlog(log: &Path, limit: u64) -> io::Result<LogPosition> {
    let mut follower = Follower::new(log, LogPosition::oldest(log)?);
    follower.skip_to(limit)?;
    Ok(follower.position().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::ChainPosition;

    fn range(after: u64, until: u64) -> LostRange {
        let at = |entries| ChainPosition { entries, head: format!("h{entries}") };
        LostRange { after: at(after), until: at(until) }
    }

    #[test]
    fn ranges_are_joined_and_counted() {
        let mut state = ExportState::starting_at(LogPosition::beginning());
        [(1, 3), (3, 7), (9, 10)]
            .into_iter()
            .for_each(|(after, until)| state.record_loss(range(after, until)));
        assert_eq!((state.lost.clone(), state.dropped), (vec![range(1, 7), range(9, 10)], 7));
        (0..200).for_each(|n| state.record_loss(range(20 + 2 * n, 21 + 2 * n)));
        assert_eq!(state.lost.len(), MAX_RANGES);
        assert_eq!(state.lost.last().unwrap().until, range(0, 419).until);
    }

    #[test]
    fn state_survives_and_a_damaged_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("export.json");
        assert_eq!(ExportState::read(&file).unwrap(), None);
        let state = ExportState { sent: 3, ..ExportState::starting_at(LogPosition::beginning()) };
        state.write(&file).unwrap();
        assert_eq!(ExportState::read(&file).unwrap(), Some(state));
        for damaged in ["", "{\"place\":", "{}", "[]"] {
            std::fs::write(&file, damaged).unwrap();
            assert!(matches!(ExportState::read(&file), Err(StateError::Damaged(_))), "{damaged}");
        }
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "the test holds the lock to make a write slow")]
    async fn writing_neither_blocks_the_runtime_nor_brings_back_an_older_state() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("export.json");
        let state = |sent| ExportState { sent, ..ExportState::starting_at(LogPosition::beginning()) };
        let sent = || ExportState::read(&file).unwrap().map(|state| state.sent);
        let mut writer = StateWriter::new(file.clone());
        let newest_written = writer.newest_written.clone();
        {
            // A slow write must not block the runtime, which has only this thread.
            let slow = newest_written.lock().unwrap();
            let mut first = std::pin::pin!(writer.write(state(1)));
            assert!(futures_util::poll!(first.as_mut()).is_pending());
            assert_eq!(sent(), None);
            drop(slow);
            first.await;
        }
        assert_eq!(sent(), Some(1));
        *newest_written.lock().unwrap() = 7;
        writer.write(state(2)).await;
        assert_eq!(sent(), Some(1), "a newer state was written meanwhile");
        writer.count = 7;
        writer.write(state(3)).await;
        assert_eq!(sent(), Some(3));
        let late = writer.newest_written.clone();
        drop(writer);
        assert_eq!(*late.lock().unwrap(), u64::MAX, "a write that is late finds a newer state");
    }
}
