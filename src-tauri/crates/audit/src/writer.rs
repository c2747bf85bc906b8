//! Appends entries to the log.
//!
//! - A full file is renamed to contain the sequence number of its first entry, and a new file is created. If the
//!   process is killed in between, the new file is created at the next start.

use crate::chain::{self, ChainPosition};
use crate::clock::now_ms;
use crate::error::AuditError;
use crate::head::HeadFile;
use crate::pending::Pending;
use crate::verify::{self, missing};
use crate::volumes::{self, LOG_NAME, Volume};
use crate::{Entry, Event, KnownHead, LogOptions};
use ironcurtain_paths::bounded_read;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum capacity of the reused write buffer, in bytes.
const MAX_BUFFER_CAPACITY: usize = 64 * 1024;

/// Writer of a log. Only one exists per log.
#[derive(Debug)]
pub(super) struct Writer {
    options: LogOptions,
    path: PathBuf,
    file: File,
    /// `true` if the log is a regular file, whose identity and length can be checked.
    regular: bool,
    /// Device and inode number of the file.
    identity: (u64, u64),
    length: u64,
    /// Position before the first entry of the active file.
    begin: ChainPosition,
    position: ChainPosition,
    /// Policy hash of the last decision in the active file.
    policy: Option<String>,
    /// `true` if an incomplete line may follow the first `length` bytes.
    torn: bool,
    /// Write buffer, reused to avoid allocations.
    buffer: String,
    /// Closed files and directories that may not be synced yet.
    closed: Vec<Arc<File>>,
    head: Option<HeadFile>,
    /// Position at which the log was opened.
    opened_at: ChainPosition,
    unknown_end: Option<String>,
}

impl Writer {
    /// Opens the log to continue its chain. Removes an incomplete last line and records the removal.
    ///
    /// # Errors
    /// Returns [`AuditError::Broken`] if the chain of the newest file is invalid or lacks the newest known entry,
    /// because an edited log must not be continued.
    pub(super) fn open(options: LogOptions) -> Result<Self, AuditError> {
        let path = options.dir.join(LOG_NAME);
        let dir = options.dir.clone();
        let broken = |problem: String| AuditError::Broken { dir: dir.clone(), problem };
        let unreadable = |e: io::Error| broken(e.to_string());
        let open_failed = |e: io::Error| broken(format!("`{}`: {e}", path.display()));
        let file = bounded_read::open_own(&path).map_err(open_failed)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let current = Volume { path: path.clone(), file: file.try_clone().map_err(unreadable)?, first: None };
        let before = end_of_closed(&options.dir).map_err(unreadable)?;
        let is_new = before.is_none() && metadata.len() == 0;
        let (known, head_problem) = newest_known(&options, is_new);
        let begin = match before {
            Some(end) => end,
            None => current.start_position().map_err(unreadable)?.unwrap_or_else(ChainPosition::start),
        };
        let mut found = (begin == known.clone().unwrap_or_else(ChainPosition::start)).then_some(());
        let on_position = |at: &ChainPosition| found = found.or((Some(at) == known.as_ref()).then_some(()));
        let read = match metadata.is_file() {
            true => verify::read(&current, begin.clone(), false, on_position, |_| ()).map_err(unreadable)?,
            false => verify::VerifiedVolume { position: begin.clone(), bytes: 0, problem: None, torn: false },
        };
        let mut writer = Self {
            path: path.clone(),
            file,
            regular: metadata.is_file(),
            identity: identity(&metadata),
            length: read.bytes,
            begin,
            policy: None,
            torn: false,
            buffer: String::new(),
            closed: Vec::new(),
            head: options.head.clone().map(HeadFile::new),
            opened_at: read.position.clone(),
            position: read.position,
            unknown_end: None,
            options,
        };
        match read.problem {
            Some(problem) if !read.torn => return Err(broken(problem)),
            Some(_) | None => {}
        }
        match known.clone().filter(|known| found.is_none() && known.entries >= writer.begin.entries) {
            Some(known) if is_new => writer.start_new(&known)?,
            // The process was killed before it wrote the head.
            Some(known) if current.begins_with(&known.head).map_err(unreadable)? => {}
            Some(known) => {
                let has_other_entry = known.entries <= writer.position.entries;
                return Err(broken(missing(&known, writer.position.entries, has_other_entry)));
            }
            None => {}
        }
        if read.torn {
            writer.file.set_len(writer.length).map_err(|e| AuditError::write(&e))?;
            writer.note("the last line of the log was incomplete after a crash and was removed")?;
        }
        match head_problem {
            Some(problem) => writer.note_head(&problem, known.as_ref())?,
            // From now on, a missing head file means that it was removed.
            None if is_new => writer.write_head(),
            None => {}
        }
        Ok(writer)
    }

    /// Writes either all of the entries or none, with a single system call. Returns the sequence number of the first.
    ///
    /// # Errors
    /// Returns [`AuditError::Write`] or [`AuditError::Lost`]; the log then contains none of the entries.
    pub(super) fn append(&mut self, entries: &[Pending]) -> Result<u64, AuditError> {
        self.check_unchanged()?;
        let failed = |e: io::Error| AuditError::write(&e);
        // An incomplete line would invalidate the chain.
        if self.torn {
            self.file.set_len(self.length).map_err(failed)?;
            self.torn = false;
        }
        if self.regular && self.length >= self.options.file_bytes {
            self.rotate().map_err(failed)?;
        }
        let first = self.position.entries + 1;
        let (mut at, mut policy) = (self.position.clone(), self.policy.clone());
        let mut text = std::mem::take(&mut self.buffer);
        for entry in entries {
            let begin = text.len();
            let prev = (at == self.begin).then_some(at.head.as_str());
            entry.write(&mut text, (at.entries + 1, now_ms()), prev, &mut policy);
            let head = chain::append_hash(&mut text, begin, &at.head);
            at = ChainPosition { entries: at.entries + 1, head };
        }
        if let Err(e) = self.file.write_all(text.as_bytes()) {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(failed(e));
        }
        self.length += text.len() as u64;
        (self.position, self.policy) = (at, policy);
        text.clear();
        text.shrink_to(MAX_BUFFER_CAPACITY);
        self.buffer = text;
        Ok(first)
    }

    /// Checks that the file still exists under its name and has exactly the length that was written.
    ///
    /// # Errors
    /// Returns [`AuditError::Lost`] if the check fails.
    pub(super) fn check_unchanged(&self) -> Result<(), AuditError> {
        let lost = |what| Err(AuditError::Lost { path: self.path.clone(), what });
        if !self.regular {
            return Ok(());
        }
        let current = match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return lost("was removed"),
            current => current.map_err(|e| AuditError::write(&e))?,
        };
        if identity(&current) != self.identity {
            return lost("was replaced");
        }
        // After a failed write, an incomplete line may follow.
        if current.len() < self.length || (current.len() > self.length && !self.torn) {
            return lost("was changed by another program");
        }
        Ok(())
    }

    /// Returns the position after the last entry.
    pub(super) fn written(&self) -> &ChainPosition {
        &self.position
    }

    /// Returns the position at which the log was opened.
    pub(super) fn opened_at(&self) -> &ChainPosition {
        &self.opened_at
    }

    /// Returns the reason entries may be missing from the end of the opened log, as a sentence, or `None` if none can
    /// be missing.
    pub(super) fn unknown_end(&self) -> Option<&str> {
        self.unknown_end.as_deref()
    }

    /// Removes and returns the writer of the head. The caller writes the head from then on.
    pub(super) fn take_head(&mut self) -> Option<HeadFile> {
        self.head.take()
    }

    /// Returns the location and retention settings.
    pub(super) fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Returns the files that may not be synced yet, oldest first. The caller syncs them without holding the
    /// lock.
    pub(super) fn unsynced(&self) -> io::Result<Vec<Arc<File>>> {
        let file = Arc::new(self.file.try_clone()?);
        Ok(self.closed.iter().cloned().chain([file]).collect())
    }

    /// Marks closed files as synced.
    pub(super) fn synced(&mut self, files: &[Arc<File>]) {
        self.closed.retain(|closed| !files.iter().any(|file| Arc::ptr_eq(closed, file)));
    }

    /// Closes the active file and creates a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let closed = self.options.dir.join(volumes::name_of(self.begin.entries + 1));
        if std::fs::symlink_metadata(&closed).is_ok() {
            return Err(io::Error::other(format!("`{}` already exists; move it away", closed.display())));
        }
        std::fs::rename(&self.path, &closed)?;
        let new = bounded_read::open_own(&self.path).and_then(|new| Ok((identity(&new.metadata()?), new)));
        let (identity, new) = new.inspect_err(|_| {
            // If this fails too, the next write reports the log as removed.
            let _ = std::fs::rename(&closed, &self.path);
        })?;
        self.identity = identity;
        self.closed.push(Arc::new(std::mem::replace(&mut self.file, new)));
        // The directory contains the new name, so it must be synced too.
        self.closed.push(Arc::new(File::open(&self.options.dir)?));
        (self.length, self.begin, self.policy) = (0, self.position.clone(), None);
        Ok(())
    }

    /// Records that a new log was started because the previous one is missing, and writes the head.
    fn start_new(&mut self, known: &ChainPosition) -> Result<(), AuditError> {
        self.note(&format!(
            "a new log was started: the previous one, with {} entries up to {}, is missing",
            known.entries, known.head
        ))?;
        self.write_head();
        Ok(())
    }

    /// Records that the head file does not identify the newest entry and rewrites that file.
    fn note_head(&mut self, problem: &str, known: Option<&ChainPosition>) -> Result<(), AuditError> {
        let file = self.options.head.clone().unwrap_or_default();
        let found = format!("the head file `{}` {problem}", file.display());
        match known {
            Some(known) => {
                self.note(&format!(
                    "{found}; entry {}, which is known elsewhere, is in the log",
                    known.entries
                ))?;
            }
            None => {
                let sentence = format!("{found}: entries may be missing from the end of the log");
                self.note(&sentence)?;
                self.unknown_end = Some(sentence);
            }
        }
        self.write_head();
        Ok(())
    }

    /// Syncs the log, then writes the head.
    fn write_head(&mut self) {
        let Some(head) = &mut self.head else { return };
        // A failure does not prevent the start: either the head is older than the log, or the problem is reported at
        // the next start.
        let _ = self.file.sync_data().and_then(|()| head.write(&self.position));
    }

    fn note(&mut self, summary: &str) -> Result<(), AuditError> {
        self.append(&[Pending::new(Entry::new(Event::Daemon, summary))?]).map(drop)
    }
}

/// Returns the newest entry according to the head file or another source, and the problem with the head file,
/// if any.
fn newest_known(options: &LogOptions, is_new: bool) -> (Option<ChainPosition>, Option<String>) {
    let Some(head) = options.head.as_deref().map(KnownHead::read) else { return (None, None) };
    let problem = head.problem().map(str::to_owned);
    match head {
        KnownHead::Entry(known) => (Some(known), None),
        // This is the first start, or the log and the head were both removed.
        KnownHead::Missing if is_new => (options.known_entry.clone(), None),
        KnownHead::Missing | KnownHead::Damaged(_) => (options.known_entry.clone(), problem),
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns the position at the end of the newest closed file, if any.
fn end_of_closed(dir: &Path) -> io::Result<Option<ChainPosition>> {
    let Some((first, path)) = volumes::closed(dir)?.pop() else { return Ok(None) };
    let volume = Volume::open(path, first)?;
    let unreadable = || io::Error::other(format!("`{}` has no valid last line", volume.name()));
    volume.end_position()?.ok_or_else(unreadable).map(Some)
}

#[cfg(test)]
impl Writer {
    /// Redirects all writes to a device that is always full.
    pub(super) fn redirect_to_full_device(&mut self) {
        self.file = File::options().append(true).open("/dev/full").unwrap();
        self.regular = false;
    }
}
