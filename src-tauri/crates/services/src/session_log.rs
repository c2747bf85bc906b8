//! Session log files, which contain servers' standard error and problems with clients. The files are limited in size,
//! and lines are escaped so that they cannot hide text or control the terminal.
//!
//! - One thread writes all logs, and callers never wait for it. Lines that arrive faster than it can write are dropped
//!   and counted.

use ironcurtain_paths::bounded_read;
use ironcurtain_visible as visible;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Maximum size of a log file, in bytes. Once it is reached, further lines are dropped and counted.
const MAX_LEN: usize = 4 * 1024 * 1024;

/// Maximum length of a line, in bytes. Longer lines are truncated.
const MAX_LINE_LEN: usize = 4000;

/// Maximum number of queued lines across all sessions.
const QUEUE: usize = 1024;

/// Maximum number of log files to keep open.
const MAX_OPEN: usize = 32;

/// Handle to the thread that writes the logs. The thread exits when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct SessionLogs(SyncSender<LogCommand>);

/// Log file of one session.
#[derive(Debug, Clone)]
pub struct SessionLog(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    path: PathBuf,
    commands: SyncSender<LogCommand>,
    /// Number of lines dropped since the last line was written.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum LogCommand {
    Line { path: PathBuf, text: String, dropped: u64 },
    Close(PathBuf),
}

impl SessionLogs {
    /// Spawns the thread.
    ///
    /// # Errors
    /// Returns the operating system's error if the thread cannot be spawned.
    pub fn start() -> io::Result<Self> {
        let (commands, inbox) = sync_channel(QUEUE);
        std::thread::Builder::new().name("session-logs".to_owned()).spawn(move || write(&inbox))?;
        Ok(Self(commands))
    }

    /// Returns a log that creates its file when the first line is written.
    #[must_use]
    pub fn log(&self, path: PathBuf) -> SessionLog {
        SessionLog(Arc::new(Handle { path, commands: self.0.clone(), dropped: AtomicU64::new(0) }))
    }
}

impl SessionLog {
    /// Queues a line without waiting. Drops the line if the queue is full.
    pub fn write(&self, mut text: String) {
        text.truncate(text.floor_char_boundary(MAX_LINE_LEN));
        let Handle { path, commands, dropped } = &*self.0;
        let before = dropped.swap(0, Ordering::Relaxed);
        match commands.try_send(LogCommand::Line { path: path.clone(), text, dropped: before }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => drop(dropped.fetch_add(before + 1, Ordering::Relaxed)),
            // The thread has exited, so lines can no longer be logged.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // If the queue is full, the thread closes the file once too many files are open.
        let _ = self.commands.try_send(LogCommand::Close(std::mem::take(&mut self.path)));
    }
}

fn write(inbox: &Receiver<LogCommand>) {
    let mut open: HashMap<PathBuf, File> = HashMap::new();
    for command in inbox {
        match command {
            LogCommand::Close(path) => drop(open.remove(&path)),
            LogCommand::Line { path, text, dropped } => {
                if open.len() >= MAX_OPEN && !open.contains_key(&path) {
                    open.clear();
                }
                // Errors are ignored, because these logs are only informational and the audit log reports a full
                // disk.
                let _ = append(&mut open, &path, &text, dropped);
            }
        }
    }
}

fn append(open: &mut HashMap<PathBuf, File>, path: &Path, text: &str, dropped: u64) -> io::Result<()> {
    if !open.contains_key(path) {
        open.insert(path.to_path_buf(), bounded_read::open_own(path)?);
    }
    let Some(file) = open.get_mut(path) else { return Ok(()) };
    let mut lines = String::new();
    if dropped > 0 {
        lines = format!("({dropped} lines were dropped because they arrived too fast)\n");
    }
    lines.push_str(&visible::line(&text.replace('\t', "    ")));
    lines.push('\n');
    let written = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if written.saturating_add(lines.len()) > MAX_LEN {
        return Ok(());
    }
    file.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait_until(holds: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_thread_writes_all_logs_and_counts_dropped_lines() {
        let dir = tempfile::tempdir().unwrap();
        let logs = SessionLogs::start().unwrap();
        let path = |n: usize| dir.path().join(format!("{n}.log"));
        let all: Vec<SessionLog> = (0..100).map(|n| logs.log(path(n))).collect();
        for (n, log) in all.iter().enumerate() {
            log.write(format!("line\tof {n}\u{1b}"));
        }
        let text = |n: usize| std::fs::read_to_string(path(n)).unwrap_or_default();
        wait_until(|| (0..100).all(|n| text(n) == format!("line    of {n}\\u{{1b}}\n")));

        // None of these calls blocks.
        let began = Instant::now();
        for _ in 0..200_000 {
            all[0].write("x".repeat(100));
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        wait_until(|| {
            all[0].write("end".to_owned());
            text(0).contains(" lines were dropped because they arrived too fast")
        });
        wait_until(|| text(0).len() <= MAX_LEN);
    }
}
