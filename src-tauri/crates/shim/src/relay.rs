//! Runs the session after the handshake: waits while the daemon uses the client's pipes, or copies bytes in relay mode.

use crate::connect::{can_be_handed_over, is_in_run};
use crate::refuse;
use ironcurtain_protocol::{ShimNote, StdioMode, read_frame};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;

/// Returns `HandedOver` if standard input and output can both be passed to the daemon, otherwise `Relayed`. Daemons
/// accept no descriptors from a sandboxed run.
pub fn stdio_mode() -> StdioMode {
    let both = cfg!(target_os = "linux")
        && !is_in_run()
        && can_be_handed_over(io::stdin())
        && can_be_handed_over(io::stdout());
    if both { StdioMode::HandedOver } else { StdioMode::Relayed }
}

/// Outcome of a session with one daemon.
pub enum SessionEnd {
    /// The session was closed, and the shim exits with this code.
    Closed(ExitCode),
    /// Another daemon continues the session. The shim resumes it with this ticket.
    Moved(String),
}

/// Waits until the daemon closes or moves the session.
pub fn wait(stream: &UnixStream) -> SessionEnd {
    match read_notes(BufReader::new(stream)) {
        ReadNotesResult::Closed { asking } => {
            for request in asking {
                refuse::answer_pending_question(&request);
            }
            SessionEnd::Closed(ExitCode::SUCCESS)
        }
        ReadNotesResult::Moved { ticket } => SessionEnd::Moved(ticket),
    }
}

/// Outcome of reading a daemon's notifications.
#[derive(Debug, PartialEq, Eq)]
enum ReadNotesResult {
    /// The session was closed while the requests in `asking` were waiting for the user.
    Closed { asking: BTreeSet<String> },
    /// The session was moved to another daemon. All client input was read and answered.
    Moved { ticket: String },
}

/// Reads the daemon's notifications until the connection closes.
fn read_notes(mut notes: impl BufRead) -> ReadNotesResult {
    let mut asking = BTreeSet::new();
    let mut ticket = None;
    // A read error also means that this daemon no longer has the session.
    while let Ok(note) = read_frame::<ShimNote>(&mut notes) {
        match note {
            ShimNote::Asking { request } => _ = asking.insert(request),
            ShimNote::Settled { request } => _ = asking.remove(&request),
            ShimNote::Moved { ticket: new_ticket } => ticket = Some(new_ticket),
        }
    }
    match ticket {
        Some(ticket) => ReadNotesResult::Moved { ticket },
        None => ReadNotesResult::Closed { asking },
    }
}

/// Copies in both directions until the daemon closes the session. When the client closes standard input, only that
/// direction is closed.
pub fn copy(stream: UnixStream) -> ExitCode {
    let Ok(mut up) = stream.try_clone() else { return ExitCode::FAILURE };
    thread::spawn(move || {
        // Ignores the error: like EOF, it means that the client sends nothing more.
        let _ = pump(&mut io::stdin().lock(), &mut up);
        let _ = up.shutdown(Shutdown::Write);
    });
    let mut down = stream;
    match pump(&mut down, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Copies like [`io::copy`], but flushes after every read, because standard output is line-buffered.
fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        to.write_all(buffer.get(..n).unwrap_or_default())?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_questions_are_known_when_the_daemon_dies() {
        let notes = concat!(
            r#"{"asking":{"request":"1"}}"#,
            "\n",
            r#"{"asking":{"request":"\"b\""}}"#,
            "\n",
            r#"{"settled":{"request":"1"}}"#,
            "\n",
            r#"{"asking":{"req"#,
        );
        let asking = BTreeSet::from(["\"b\"".to_owned()]);
        assert_eq!(read_notes(notes.as_bytes()), ReadNotesResult::Closed { asking });
    }

    #[test]
    fn moved_session_returns_its_ticket() {
        let notes = "{\"asking\":{\"request\":\"1\"}}\n{\"settled\":{\"request\":\"1\"}}\n{\"moved\":{\"ticket\":\"t\"}}\n";
        assert_eq!(read_notes(notes.as_bytes()), ReadNotesResult::Moved { ticket: "t".to_owned() });
    }
}
