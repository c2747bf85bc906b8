//! Child process that exchanges JSON lines over its standard input and output.

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Maximum number of messages buffered for the test.
const READ_AHEAD: usize = 10_000;

/// Running program, killed on drop.
pub struct JsonProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl JsonProcess {
    /// Spawns a program and starts reading its output.
    ///
    /// # Panics
    /// Panics if the program cannot be spawned.
    pub fn start(command: &mut Command) -> Self {
        Self::start_reading(command, READ_AHEAD)
    }

    /// Like [`JsonProcess::start`], but buffers at most `read_ahead` messages.
    ///
    /// # Panics
    /// Panics if the program cannot be spawned.
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

    /// Writes a message as one line to the program's standard input.
    ///
    /// # Panics
    /// Panics if the program has closed its standard input.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Writes bytes to the program's standard input.
    ///
    /// # Panics
    /// Panics if the program has closed its standard input.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("its input is open").write_all(bytes).expect("it reads its input");
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// Returns an error on timeout, or if the program has closed its standard output.
    pub fn receive(&self, within: Duration) -> Result<Value, RecvTimeoutError> {
        self.lines.recv_timeout(within)
    }

    /// Closes the program's standard input.
    pub fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// Kills the program with `SIGKILL`.
    ///
    /// # Errors
    /// Returns an error if the signal cannot be sent.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Waits for the program to exit. Returns `true` if its exit status is zero.
    ///
    /// # Panics
    /// Panics if waiting fails.
    pub fn wait_for_success(&mut self) -> bool {
        self.child.wait().expect("waiting for the process succeeds").success()
    }
}

impl Drop for JsonProcess {
    fn drop(&mut self) {
        self.hang_up();
        // Ignores the error: the program has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
