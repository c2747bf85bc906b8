//! The least that can stand between a client and a server: a process that copies from one pipe to the other, in both
//! directions, and reads nothing of what it copies. What it adds is what a process between two others costs here.

use anyhow::Context;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// The word by which this program is the relay; the server's command follows.
const WORD: &str = "--relay";

/// The number of bytes that are copied at once.
const PIECE: usize = 64 * 1024;

/// The command of a relay before this server.
pub fn before(server: &Command) -> anyhow::Result<Command> {
    let mut relay = Command::new(std::env::current_exe()?);
    relay.arg(WORD).arg(server.get_program()).args(server.get_args());
    Ok(relay)
}

/// Runs the relay, if this program was started as one, until the conversation is over.
pub fn run_if_asked() -> Option<anyhow::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == WORD).then(|| {
        let program = words.next().context("no server to stand before")?;
        let mut server =
            Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to_server = server.stdin.take().context("no input")?;
        let from_server = server.stdout.take().context("no output")?;
        let (from_client, to_client) = (raw_stdin()?, raw_stdout()?);
        let answers = std::thread::spawn(move || copy(from_server, to_client));
        copy(from_client, to_server)?;
        server.wait()?;
        answers.join().map_err(|_| anyhow::anyhow!("the relay has panicked"))??;
        Ok(())
    })
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece)?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else { return Ok(()) };
        to.write_all(piece)?;
    }
}

/// Standard input without the buffer and the lock of the library.
fn raw_stdin() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(rustix::stdio::stdin())?))
}

/// The same of standard output.
fn raw_stdout() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(rustix::stdio::stdout())?))
}
