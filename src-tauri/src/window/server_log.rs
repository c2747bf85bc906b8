//! Returns the last lines of an active session's server log.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_protocol::{Reply, Request};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Number of bytes read from the end of the log.
const TAIL: u64 = 16 * 1024;

/// Maximum number of returned lines.
const LINES: usize = 40;

pub(super) async fn server_log(state: &AppState, session: String) -> Result<Vec<String>, CommandError> {
    // The folder name comes from the list of active sessions, never from the page.
    let reply = state.backend.request(Request::Sessions).await;
    let Reply::Sessions(sessions) = reply else { return Err(CommandError::of(reply)) };
    let live = sessions.into_iter().find(|live| live.id == session);
    let live = live.ok_or_else(|| CommandError::malformed("this session is closed"))?;
    let log = trusted(state)?.home.sessions().join(&live.id).join("session.log");
    run_blocking(move || last_lines(&log)).await
}

fn last_lines(log: &Path) -> io::Result<Vec<String>> {
    let mut file = match File::open(log) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let start = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // Skips the first line if it is incomplete.
    let whole = text.lines().skip(usize::from(start > 0));
    let mut lines: Vec<String> = whole.map(str::to_owned).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_last_complete_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("session.log");
        assert_eq!(last_lines(&log).unwrap(), Vec::<String>::new());
        std::fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(last_lines(&log).unwrap(), ["one", "two"]);
        let long: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&log, long).unwrap();
        let shown = last_lines(&log).unwrap();
        assert_eq!((shown.len(), shown.last().unwrap().as_str()), (LINES, "line 4999"));
    }
}
