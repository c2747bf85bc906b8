//! Reads log entries on blocking threads, outside the async runtime's workers.

use crate::event::ExportedEvent;
use crate::paths::PathForm;
use ironcurtain_audit::{ChainPosition, FollowedEntry, Follower, LogPosition, LostRange};
use std::io;
use std::path::PathBuf;

/// Size in bytes at which no more log lines are added to a batch.
const MAX_BYTES: u64 = 1024 * 1024;

/// Entry that was read.
#[derive(Debug)]
pub(crate) struct ReadEntry {
    pub(crate) event: ExportedEvent,
    /// Position after the entry.
    pub(crate) position: LogPosition,
    /// Length of the entry's line, in bytes.
    pub(crate) bytes: u64,
}

/// Result of a read.
#[derive(Debug, Default)]
pub(crate) struct ReadEntries {
    /// Range of lost entries. If set, there are no entries.
    pub(crate) lost: Option<LostRange>,
    pub(crate) entries: Vec<ReadEntry>,
}

/// Log reader.
#[derive(Debug)]
pub(crate) struct Reader {
    log: PathBuf,
    form: PathForm,
    /// Log follower, or `None` while a thread uses it and after such a thread has failed.
    follower: Option<Follower>,
    position: LogPosition,
    /// `true` once the stored position has been compared with the log.
    is_compared: bool,
}

impl Reader {
    pub(crate) fn new(log: PathBuf, form: PathForm, position: LogPosition) -> Self {
        Self { log, form, follower: None, position, is_compared: false }
    }

    /// Returns `true` once the stored position has been compared with the log.
    pub(crate) fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// Returns the position after the last entry that was read.
    pub(crate) fn position(&self) -> &LogPosition {
        &self.position
    }

    /// Returns the number of unread bytes.
    pub(crate) async fn behind(&mut self) -> io::Result<u64> {
        self.with_follower(|follower| follower.behind()).await
    }

    /// Skips entries until at most `limit` bytes are unread.
    pub(crate) async fn skip_to(&mut self, limit: u64) -> io::Result<()> {
        self.with_follower(move |follower| follower.skip_to(limit)).await
    }

    /// Compares the stored position with the log on the first call and returns the lost range, if any.
    pub(crate) async fn compare(&mut self) -> io::Result<Option<LostRange>> {
        if self.is_compared {
            return Ok(None);
        }
        let lost = self.with_follower(Follower::compare).await?;
        self.is_compared = true;
        Ok(lost)
    }

    /// Reads entries up to the position `synced`, or returns a lost range. The writer knows the hash at that position,
    /// so an edited file is an error even if the hashes after the edit are valid.
    pub(crate) async fn read(
        &mut self,
        synced: ChainPosition,
        max_entries: usize,
    ) -> io::Result<ReadEntries> {
        let (form, log) = (self.form.clone(), self.log.clone());
        self.with_follower(move |follower| {
            let (mut result, mut bytes_read) = (ReadEntries::default(), 0);
            while result.entries.len() < max_entries && bytes_read < MAX_BYTES {
                let before = follower.position().clone();
                if before.written.entries >= synced.entries {
                    break;
                }
                match follower.read_next()? {
                    Some(FollowedEntry::Entry { entry, link, bytes }) => {
                        let after = &follower.position().written;
                        if after.entries == synced.entries && *after != synced {
                            return Err(replaced_entry_error(after.entries));
                        }
                        bytes_read += bytes;
                        let event = ExportedEvent::from_entry(&entry, &link, &form);
                        result.entries.push(ReadEntry {
                            event,
                            position: follower.position().clone(),
                            bytes,
                        });
                    }
                    Some(FollowedEntry::Lost(range)) if result.entries.is_empty() => {
                        result.lost = Some(range);
                        break;
                    }
                    Some(FollowedEntry::Lost(_)) => {
                        // The loss is reported again once the preceding entries have been sent.
                        *follower = Follower::resume(&log, before);
                        break;
                    }
                    None => break,
                }
            }
            Ok(result)
        })
        .await
    }

    /// Runs a blocking function. After a failure, reading continues from the last position.
    async fn with_follower<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&mut Follower) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let mut follower = self.follower.take().unwrap_or_else(|| {
            let follower = if self.is_compared { Follower::resume } else { Follower::new };
            follower(&self.log, self.position.clone())
        });
        let task = tokio::task::spawn_blocking(move || {
            let result = read(&mut follower);
            (result, follower)
        });
        let (result, follower) = task.await.map_err(io::Error::other)?;
        if result.is_ok() {
            self.position = follower.position().clone();
            self.follower = Some(follower);
        }
        result
    }
}

fn replaced_entry_error(entry: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("entry {entry} is not the one that was written"))
}
