//! After the welcome: wait while the daemon talks to the client, or copy bytes where it cannot.

use crate::connect::can_be_handed_over;
use crate::refuse;
use ironcurtain_protocol::{ShimNote, StdioMode, read_frame};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;

/// Returns `HandedOver` if the daemon can be given both standard input and output, else `Relayed`.
pub fn how() -> StdioMode {
    let both =
        cfg!(target_os = "linux") && can_be_handed_over(io::stdin()) && can_be_handed_over(io::stdout());
    if both { StdioMode::HandedOver } else { StdioMode::Relayed }
}

/// The end of a session with one daemon.
pub enum SessionEnd {
    /// Nothing follows.
    Over(ExitCode),
    /// Another daemon goes on with it, by this ticket.
    Moved(String),
}

/// Waits until the daemon ends the session or moves it.
pub fn wait(stream: &UnixStream) -> SessionEnd {
    match follow(BufReader::new(stream)) {
        Followed::Over { asking } => {
            for request in asking {
                refuse::answer_asked(&request);
            }
            SessionEnd::Over(ExitCode::SUCCESS)
        }
        Followed::Moved { ticket } => SessionEnd::Moved(ticket),
    }
}

/// The end of a daemon's notes.
#[derive(Debug, PartialEq, Eq)]
enum Followed {
    /// The session is over; a person was being asked about these requests just then.
    Over { asking: BTreeSet<String> },
    /// The session is moved, with nothing of the client's unanswered or unread.
    Moved { ticket: String },
}

/// Follows the daemon's notes to their end.
fn follow(mut notes: impl BufRead) -> Followed {
    let mut asking = BTreeSet::new();
    let mut ticket = None;
    // Any end of the notes is the end of the session there.
    while let Ok(note) = read_frame::<ShimNote>(&mut notes) {
        match note {
            ShimNote::Asking { request } => _ = asking.insert(request),
            ShimNote::Settled { request } => _ = asking.remove(&request),
            ShimNote::Moved { ticket: given } => ticket = Some(given),
        }
    }
    match ticket {
        Some(ticket) => Followed::Moved { ticket },
        None => Followed::Over { asking },
    }
}

/// Copies both ways until the daemon ends the session. The end of the client's input ends the way to the daemon.
pub fn copy(stream: UnixStream) -> ExitCode {
    let Ok(mut up) = stream.try_clone() else { return ExitCode::FAILURE };
    thread::spawn(move || {
        // However it ended, nothing more comes from the client.
        let _ = pump(&mut io::stdin().lock(), &mut up);
        let _ = up.shutdown(Shutdown::Write);
    });
    let mut down = stream;
    match pump(&mut down, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Unlike [`io::copy`] it passes on each piece at once, also to a line-buffered standard output.
fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let n = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        to.write_all(piece.get(..n).unwrap_or_default())?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_asked_at_the_end_is_known() {
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
        assert_eq!(follow(notes.as_bytes()), Followed::Over { asking });
    }

    #[test]
    fn a_session_that_was_moved_is_not_over() {
        let notes = "{\"asking\":{\"request\":\"1\"}}\n{\"settled\":{\"request\":\"1\"}}\n{\"moved\":{\"ticket\":\"t\"}}\n";
        assert_eq!(follow(notes.as_bytes()), Followed::Moved { ticket: "t".to_owned() });
    }
}
