//! Who had the sandbox made, and hears of it: the trusted process over its control stream, or a person at a terminal.

use std::{io, os::unix::net::UnixStream};

use rustix::event::{PollFd, PollFlags};

use super::{lines::say, terminal::Terminal};
use crate::control::Event;

/// Who it is.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    Control(&'a UnixStream),
    Terminal(&'a Terminal),
}

impl Owner<'_> {
    /// Tells the news.
    pub(super) fn say(&self, event: &Event) -> io::Result<()> {
        match self {
            Self::Control(control) => say(control, event),
            Self::Terminal(terminal) => terminal.say(event),
        }
    }

    /// What has something to say when the sandbox is given up before it is ready.
    pub(super) fn giving_up(&self) -> PollFd<'_> {
        match self {
            Self::Control(control) => PollFd::new(control, PollFlags::RDHUP),
            Self::Terminal(terminal) => PollFd::new(terminal.signals(), PollFlags::IN),
        }
    }
}
