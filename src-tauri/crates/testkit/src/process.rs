//! A program that is talked to in lines of JSON over its standard input and output.

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The number of messages that are read before anybody wants them.
const READ_AHEAD: usize = 10_000;

/// A running program. It is killed when this is dropped.
pub struct JsonProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl JsonProcess {
    /// Starts a program.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(command: &mut Command) -> Self {
        Self::start_reading(command, READ_AHEAD)
    }

    /// As [`JsonProcess::start`], reading so many of its messages before anybody wants them.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_reading(command: &mut Command, read_ahead: usize) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = mpsc::sync_channel(read_ahead);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let Ok(line) = line else { return };
                let message = serde_json::from_slice(&line).expect("every line of standard output is JSON");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a message, in a line.
    ///
    /// # Panics
    /// When the program does not take it.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the program does not take them.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("its input is open").write_all(bytes).expect("it reads its input");
    }

    /// The next message that it writes.
    ///
    /// # Errors
    /// When none comes in time, or the program has closed its output.
    pub fn receive(&self, within: Duration) -> Result<Value, RecvTimeoutError> {
        self.lines.recv_timeout(within)
    }

    /// Closes its input.
    pub fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// Kills it.
    ///
    /// # Errors
    /// When the system refuses to.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Waits until it has ended; returns `true` if it ended well.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn ended_well(&mut self) -> bool {
        self.child.wait().expect("it can be waited for").success()
    }
}

impl Drop for JsonProcess {
    fn drop(&mut self) {
        self.hang_up();
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
