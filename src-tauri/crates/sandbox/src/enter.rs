//! The last step before the server, made inside the finished sandbox: wait for the word, then become the server.
//!
//! - The server starts only after the supervisor said so, which it does when the initial mounts are made. A supervisor
//!   that has died says nothing, and then the server never starts.
//! - INVARIANT: the server gets descriptors 0, 1 and 2 and no other; and nobody else in the sandbox holds them, so that
//!   end-of-file and broken pipes mean what they mean without a sandbox.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::sys;

/// First byte in: the sandbox is complete.
pub(crate) const READY: u8 = b'r';
/// First byte out: start the server.
pub(crate) const GO: u8 = b'g';

/// Arguments: the descriptors of stdin, stdout, stderr and of the supervisor, the working directory, the command.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [stdin, stdout, stderr, gate, cwd, program, rest @ ..] = args else { return ExitCode::from(2) };
    let taken = [stdin, stdout, stderr, gate].map(|number| sys::process::take_descriptor(number));
    let [Ok(stdin), Ok(stdout), Ok(stderr), Ok(gate)] = taken else { return ExitCode::from(2) };
    let mut gate = File::from(gate);
    if !passed(&mut gate) {
        return ExitCode::from(1);
    }
    let streams = || -> io::Result<()> {
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        Ok(sys::process::close_on_exec_from(3)?)
    };
    let error = match streams().and_then(|()| std::env::set_current_dir(cwd)) {
        Ok(()) => Command::new(program).args(rest).exec(),
        Err(error) => error,
    };
    // Exec has closed the gate if it worked; what is written here is why it did not.
    let _ = write!(gate, "`{program}` could not be started in `{cwd}`: {error}");
    ExitCode::from(127)
}

fn passed(gate: &mut File) -> bool {
    let mut word = [0];
    gate.write_all(&[READY]).is_ok() && gate.read_exact(&mut word).is_ok() && word == [GO]
}
