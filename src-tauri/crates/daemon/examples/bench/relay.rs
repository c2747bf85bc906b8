//! Minimal relay between a client and a server. It copies bytes in both directions without parsing them, which shows
//! the minimum cost of an intermediate process on this machine.

use anyhow::Context;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// Option that makes this program run as a relay. The server's command follows the option.
const OPTION: &str = "--relay";

/// Size of the copy buffer, in bytes.
const BUFFER_SIZE: usize = 64 * 1024;

/// Returns the command that starts a relay to this server.
pub fn command_for(server: &Command) -> anyhow::Result<Command> {
    let mut relay = Command::new(std::env::current_exe()?);
    relay.arg(OPTION).arg(server.get_program()).args(server.get_args());
    Ok(relay)
}

/// Runs as a relay until the client disconnects. Returns `None` if the option was not given.
pub fn run_if_requested() -> Option<anyhow::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == OPTION).then(|| {
        let program = words.next().context("the command of the server is missing")?;
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
    let mut piece = vec![0; BUFFER_SIZE];
    loop {
        let read = from.read(&mut piece)?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else { return Ok(()) };
        to.write_all(piece)?;
    }
}

/// Returns standard input, bypassing std's buffering and locking.
fn raw_stdin() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(rustix::stdio::stdin())?))
}

/// Returns standard output, bypassing std's buffering and locking.
fn raw_stdout() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(rustix::stdio::stdout())?))
}
