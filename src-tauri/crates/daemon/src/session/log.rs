//! A session's log: what its server writes to standard error, and what was odd about it. Bounded, for people only:
//! nothing in a line hides or steers the terminal it is looked at on.

use crate::consent::visible;
use ironcurtain_paths::bounded_read;
use std::io::Write;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// The longest a log gets; what comes after is counted, not kept.
const LONGEST: usize = 4 * 1024 * 1024;

/// The number of lines that may that wait to be written.
const QUEUE: usize = 256;

/// Starts the log's owner. The file is made with the first line.
pub(super) fn start(path: PathBuf) -> mpsc::Sender<String> {
    let (send, mut lines) = mpsc::channel::<String>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let mut file = None;
        let mut written = 0;
        while let Some(line) = lines.blocking_recv() {
            let line = visible::line(&line.replace('\t', "    "));
            written += line.len() + 1;
            if written > LONGEST {
                continue;
            }
            if file.is_none() {
                file = bounded_read::open_own(&path).ok();
            }
            // It is for people to read later; a full disk is told where it matters, by the audit log.
            let _ = file.as_mut().map(|f| writeln!(f, "{line}"));
        }
    });
    send
}
