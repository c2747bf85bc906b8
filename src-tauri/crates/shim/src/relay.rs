//! After the welcome: wait while the daemon talks to the client, or copy bytes where it cannot.

use crate::connect::can_be_handed_over;
use ironcurtain_protocol::Stdio;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;

/// How this process's standard input and output can reach the daemon.
pub fn how() -> Stdio {
    let both =
        cfg!(target_os = "linux") && can_be_handed_over(io::stdin()) && can_be_handed_over(io::stdout());
    if both { Stdio::HandedOver } else { Stdio::Relayed }
}

/// Lets go of standard input and output, and waits until the daemon ends the session.
pub fn wait(stream: &UnixStream) -> ExitCode {
    if let Err(problem) = let_go() {
        // The client would miss the end of the session; better no session.
        let _ = writeln!(
            io::stderr(),
            "ironcurtain-shim: could not let go of standard input and output: {problem}"
        );
        return ExitCode::FAILURE;
    }
    let mut byte = [0];
    // The daemon says nothing more here: any end of this read is the end of the session.
    let _ = (&mut &*stream).read(&mut byte);
    ExitCode::SUCCESS
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

/// The daemon must hold the only copies, so that either side's end is seen by the other.
fn let_go() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}
