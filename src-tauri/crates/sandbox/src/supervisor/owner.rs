//! Owner of a sandbox: the trusted process on its control stream, or the user at a terminal.

use std::{io, os::unix::net::UnixStream};

use rustix::event::{PollFd, PollFlags};

use super::lines::write_message;
use crate::control::SandboxEvent;

/// Recipient of a sandbox's events, which can also cancel its start.
pub(super) trait SandboxOwner {
    /// Sends an event to the owner.
    fn notify(&self, event: &SandboxEvent) -> io::Result<()>;

    /// Returns a descriptor that becomes ready when the owner cancels the start.
    fn cancellation(&self) -> PollFd<'_>;
}

/// The trusted process at the other end of a control stream.
impl SandboxOwner for UnixStream {
    fn notify(&self, event: &SandboxEvent) -> io::Result<()> {
        write_message(self, event)
    }

    fn cancellation(&self) -> PollFd<'_> {
        PollFd::new(self, PollFlags::RDHUP)
    }
}
