//! The window's own process, as the trusted process starts and ends it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The argument by which this program becomes the window.
pub(crate) const ARGUMENT: &str = "--window";

/// A window's process that was started, and shows nothing before it is told to.
pub struct WindowProcess {
    pub(super) process: Process,
    pub(super) channel: UnixStream,
}

/// A process that ends, at the latest, when nobody holds this any more.
pub(super) struct Process(Child);

impl WindowProcess {
    /// Starts it: this program again, as it is in memory, whatever lies at its path by now.
    ///
    /// # Errors
    /// The operating system's answer.
    pub fn start() -> io::Result<Self> {
        let (channel, theirs) = UnixStream::pair()?;
        let this = std::env::current_exe()?;
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".as_ref() } else { this.as_path() };
        let mut command = Command::new(program);
        command.arg0(&this).arg(ARGUMENT).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ok(Self { process: Process(command.spawn()?), channel })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
