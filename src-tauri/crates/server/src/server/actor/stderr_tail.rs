//! Copies a server's standard error to the session log, and keeps its last bytes for error messages.

use crate::server::process::ServerStderr;
use ironcurtain_audit::redacted;
use ironcurtain_services::SessionLog;
use ironcurtain_visible as visible;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Number of bytes to keep.
const MAX_LEN: usize = 1000;

/// Maximum time to read the remaining output after the server has exited. Other processes may still hold its standard
/// error open.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// Reader for a server's standard error, with the last bytes that it read.
#[derive(Debug)]
pub(super) struct StderrTail {
    last: Arc<Mutex<VecDeque<u8>>>,
    task: JoinHandle<()>,
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StderrTail {
    pub(super) fn new(stderr: ServerStderr, log: SessionLog) -> Self {
        let last = Arc::<Mutex<VecDeque<u8>>>::default();
        let task = tokio::spawn(copy(stderr, log, last.clone()));
        Self { last, task }
    }

    /// Returns the last lines as a single line with secrets redacted, for display to users and agents.
    pub(super) async fn text(&mut self) -> String {
        // After the time limit, use the bytes that have been read.
        let _ = tokio::time::timeout(END_TIMEOUT, &mut self.task).await;
        let last: Vec<u8> = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.iter().copied().collect()
        };
        let text = String::from_utf8_lossy(&last);
        // Drop a truncated first line, because it may start with part of a secret. A partial secret cannot be
        // recognized.
        let whole =
            if last.len() < MAX_LEN { &*text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
        let lines: Vec<&str> = whole.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = Map::from_iter([("said".to_owned(), Value::from(lines.join("; ")))]);
        redacted(&message).get("said").and_then(Value::as_str).map(visible::line).unwrap_or_default()
    }
}

async fn copy(mut stderr: ServerStderr, log: SessionLog, last: Arc<Mutex<VecDeque<u8>>>) {
    while let Some(text) = stderr.next().await {
        {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.extend(text.get(text.len().saturating_sub(MAX_LEN)..).unwrap_or_default());
            let surplus = last.len().saturating_sub(MAX_LEN);
            last.drain(..surplus);
        }
        for line in text.split_inclusive(|&b| b == b'\n') {
            write(&log, line);
        }
    }
}

fn write(log: &SessionLog, line: &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    log.write(String::from_utf8_lossy(line).into_owned());
}
