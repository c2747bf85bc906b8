//! After the welcome: wait while the daemon talks to the client, or copy bytes where it cannot.

use crate::connect::can_be_handed_over;
use crate::refuse;
use ironcurtain_protocol::{QuestionNote, StdioMode, read_frame};
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

/// Lets go of standard input, and waits until the daemon ends the session.
pub fn wait(stream: &UnixStream) -> ExitCode {
    if let Err(problem) = let_go() {
        // The daemon would miss the client's end; better no session.
        let _ = writeln!(io::stderr(), "ironcurtain-shim: could not let go of standard input: {problem}");
        return ExitCode::FAILURE;
    }
    let asking = follow(BufReader::new(stream));
    for request in asking {
        refuse::answer_asked(&request);
    }
    ExitCode::SUCCESS
}

/// Follows the daemon's notes to the end of the session: the requests a person was being asked about just then.
fn follow(mut notes: impl BufRead) -> BTreeSet<String> {
    let mut asking = BTreeSet::new();
    // Any end of the notes is the end of the session.
    while let Ok(note) = read_frame::<QuestionNote>(&mut notes) {
        match note {
            QuestionNote::Asking { request } => asking.insert(request),
            QuestionNote::Settled { request } => asking.remove(&request),
        };
    }
    asking
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

/// The daemon must hold the only copy of the client's input, so that its end is seen there. Standard output stays: it
/// is closed with this process, and until then the last word to the client may be ours.
fn let_go() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
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
        assert_eq!(follow(notes.as_bytes()), BTreeSet::from(["\"b\"".to_owned()]));
    }
}
