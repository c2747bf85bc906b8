//! Reads log entries on blocking threads, outside the async runtime's workers.

use crate::event::ExportedEvent;
use crate::paths::PathForm;
use ironcurtain_audit::{FollowedEntry, Follower, LogPlace, LostRange, Written};
use std::io;
use std::path::PathBuf;

/// Size in bytes at which no more log lines are added to a batch.
const MAX_BYTES: u64 = 1024 * 1024;

/// Entry that was read.
#[derive(Debug)]
pub(crate) struct ReadEntry {
    pub(crate) event: ExportedEvent,
    /// Position after the entry.
    pub(crate) place: LogPlace,
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
    place: LogPlace,
    /// `true` once the stored position has been compared with the log.
    is_compared: bool,
}

impl Reader {
    pub(crate) fn new(log: PathBuf, form: PathForm, place: LogPlace) -> Self {
        Self { log, form, follower: None, place, is_compared: false }
    }

    /// Returns `true` once the stored position has been compared with the log.
    pub(crate) fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// Returns the position after the last entry that was read.
    pub(crate) fn place(&self) -> &LogPlace {
        &self.place
    }

    /// Returns the number of unread bytes.
    pub(crate) async fn behind(&mut self) -> io::Result<u64> {
        self.with(|follower| follower.behind()).await
    }

    /// Skips entries until at most `limit` bytes are unread.
    pub(crate) async fn skip_to(&mut self, limit: u64) -> io::Result<()> {
        self.with(move |follower| follower.skip_to(limit)).await
    }

    /// Compares the stored position with the log on the first call, and returns the lost range, if any.
    pub(crate) async fn compare(&mut self) -> io::Result<Option<LostRange>> {
        if self.is_compared {
            return Ok(None);
        }
        let lost = self.with(Follower::compare).await?;
        self.is_compared = true;
        Ok(lost)
    }

    /// Reads entries up to the position `synced`, or returns a lost range. The writer knows the hash at that position,
    /// so an edited file is an error even if the hashes after the edit are valid.
    pub(crate) async fn read(&mut self, synced: Written, most: usize) -> io::Result<ReadEntries> {
        let (form, log) = (self.form.clone(), self.log.clone());
        self.with(move |follower| {
            let (mut found, mut total) = (ReadEntries::default(), 0);
            while found.entries.len() < most && total < MAX_BYTES {
                let before = follower.place().clone();
                if before.written.entries >= synced.entries {
                    break;
                }
                match follower.read_next()? {
                    Some(FollowedEntry::Entry { entry, link, bytes }) => {
                        let after = &follower.place().written;
                        if after.entries == synced.entries && *after != synced {
                            return Err(replaced(after.entries));
                        }
                        total += bytes;
                        let event = ExportedEvent::of(&entry, &link, &form);
                        found.entries.push(ReadEntry { event, place: follower.place().clone(), bytes });
                    }
                    Some(FollowedEntry::Lost(range)) if found.entries.is_empty() => {
                        found.lost = Some(range);
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
            Ok(found)
        })
        .await
    }

    /// Runs a blocking function. After a failure, reading continues from the last position.
    async fn with<T: Send + 'static>(
        &mut self,
        ask: impl FnOnce(&mut Follower) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let mut follower = self.follower.take().unwrap_or_else(|| {
            let follower = if self.is_compared { Follower::resume } else { Follower::new };
            follower(&self.log, self.place.clone())
        });
        let asked = tokio::task::spawn_blocking(move || {
            let answer = ask(&mut follower);
            (answer, follower)
        });
        let (answer, follower) = asked.await.map_err(io::Error::other)?;
        if answer.is_ok() {
            self.place = follower.place().clone();
            self.follower = Some(follower);
        }
        answer
    }
}

fn replaced(entry: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("entry {entry} is not the one that was written"))
}
