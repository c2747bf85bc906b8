//! Child process that exchanges lines of JSON over its standard input and output.

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Number of messages read ahead.
const READ_AHEAD: usize = 10_000;

/// Running program, killed when dropped.
pub struct JsonProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl JsonProcess {
    /// Starts a program.
    ///
    /// # Panics
    /// The program cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Self::start_reading(command, READ_AHEAD)
    }

    /// Like [`JsonProcess::start`], but reads at most `read_ahead` messages ahead.
    ///
    /// # Panics
    /// The program cannot be started.
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

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a message as one line.
    ///
    /// # Panics
    /// The program does not read it.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends raw bytes.
    ///
    /// # Panics
    /// The program does not read them.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("its input is open").write_all(bytes).expect("it reads its input");
    }

    /// Returns the next message.
    ///
    /// # Errors
    /// Timed out, or the program has closed its output.
    pub fn receive(&self, within: Duration) -> Result<Value, RecvTimeoutError> {
        self.lines.recv_timeout(within)
    }

    /// Closes the program's input.
    pub fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// Kills the program.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Waits for the program to exit, and returns whether it succeeded.
    ///
    /// # Panics
    /// Waiting fails.
    pub fn ended_well(&mut self) -> bool {
        self.child.wait().expect("waiting for the process succeeds").success()
    }
}

impl Drop for JsonProcess {
    fn drop(&mut self) {
        self.hang_up();
        // Ignore the error: the program may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
