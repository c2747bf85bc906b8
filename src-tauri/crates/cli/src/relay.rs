//! `relay`: connects this machine's trusted process to a desktop, over standard input and output.
//!
//! - Copies only ciphertext. The keys and the questions stay in the trusted process.

use crate::background;
use crate::connection::LinkedConnection;
use anyhow::bail;
use ironcurtain_protocol::{AttachNote, Purpose};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;

/// Relays until the desktop disconnects.
pub fn perform() -> anyhow::Result<ExitCode> {
    background::start_if_needed()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut linked = LinkedConnection::open(Purpose::Relay, theirs.into())?;
    let (input, output) = (file(io::stdin())?, file(io::stdout())?);
    let to_daemon = ours.try_clone()?;
    // This thread is not joined, because it may still be waiting for input when the connection ends.
    thread::spawn(move || {
        copy(&input, &to_daemon);
        to_daemon.shutdown(Shutdown::Write)
    });
    let copied = thread::spawn(move || copy(&ours, &output));
    let why = loop {
        match linked.next()? {
            AttachNote::Code { .. } | AttachNote::Attached => {}
            AttachNote::Ended { why, .. } => break why,
        }
    };
    // The copying thread exits, because the trusted process has closed its end of the socket.
    let _ = copied.join();
    bail!("{why}")
}

/// Copies until either side closes. Does not use `io::copy`, because that calls `splice`. While `splice` waits for the
/// socket, it locks the pipe, so sshd cannot read from the pipe.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if to.write_all(buffer.get(..read).unwrap_or_default()).is_err() {
            return;
        }
    }
}

fn file(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
