//! Whoever had the sandbox made, and hears of it: the trusted process over its control stream, or a person at a terminal.

use std::{io, os::unix::net::UnixStream};

use rustix::event::{PollFd, PollFlags};

use super::lines::say;
use crate::control::SandboxEvent;

/// Whoever it is.
pub(super) trait SandboxOwner {
    /// Tells the news.
    fn say(&self, event: &SandboxEvent) -> io::Result<()>;

    /// The descriptor that has news when the sandbox is given up before it is ready.
    fn giving_up(&self) -> PollFd<'_>;
}

/// The trusted process, at the other end of the control stream.
impl SandboxOwner for UnixStream {
    fn say(&self, event: &SandboxEvent) -> io::Result<()> {
        say(self, event)
    }

    fn giving_up(&self) -> PollFd<'_> {
        PollFd::new(self, PollFlags::RDHUP)
    }
}
