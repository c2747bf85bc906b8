//! The user's terminal, in raw mode while its input goes to a run's program.
//!
//! - INVARIANT: the modes are restored on drop or, if this process is killed, by the [`TerminalGuard`].
//! - The terminal is reopened, because the standard streams share their file status flags with other programs.

use super::terminal_guard::TerminalGuard;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, Winsize, isatty, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Terminal from which the run was started.
pub struct UserTerminal {
    file: OwnedFd,
    /// Original modes, restored at the end.
    own: Termios,
    is_raw: bool,
    is_shared: bool,
    guard: TerminalGuard,
}

impl UserTerminal {
    /// Opens the terminal of the first standard stream that is a terminal. `is_shared` must be `true` if other programs
    /// may use the terminal during the run.
    pub fn find(is_shared: bool) -> io::Result<Option<Self>> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let Some(stream) = streams.into_iter().find(|stream| isatty(stream)) else { return Ok(None) };
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            // Opening fails if another user owns the terminal, as after `su`. In this case, uses the stream itself.
            Err(_) => stream.try_clone_to_owned()?,
        };
        let own = tcgetattr(&file)?;
        Ok(Some(Self { guard: TerminalGuard::start(&file)?, file, own, is_raw: false, is_shared }))
    }

    pub fn size(&self) -> io::Result<Winsize> {
        Ok(tcgetwinsize(&self.file)?)
    }

    pub fn own_modes(&self) -> &Termios {
        &self.own
    }

    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// Returns `true` if this process group is in the foreground. Otherwise, the caller must neither read from the
    /// terminal nor change it.
    pub fn is_ours(&self) -> bool {
        tcgetpgrp(&self.file).map_or(true, |group| group == getpgrp())
    }

    /// Sets raw mode. A shared terminal keeps output processing on.
    pub fn make_raw(&mut self) -> io::Result<()> {
        if !self.is_raw {
            self.own = tcgetattr(&self.file)?;
            self.guard.remember()?;
        }
        let mut raw = self.own.clone();
        raw.make_raw();
        if self.is_shared {
            raw.output_modes = self.own.output_modes;
        }
        self.is_raw = true;
        Ok(tcsetattr(&self.file, OptionalActions::Now, &raw)?)
    }

    /// Restores the original modes and discards unread input, which was typed for the program or is a terminal reply to
    /// the program.
    pub fn restore(&mut self) {
        // If this process group is in the background, the foreground process group has set its own modes.
        if std::mem::take(&mut self.is_raw) && self.is_ours() {
            // Ignores the error: the terminal was closed.
            let _ = tcsetattr(&self.file, OptionalActions::Flush, &self.own);
        }
    }

    /// Discards unread input.
    pub fn discard_input(&self) {
        // Ignores the error: the terminal was closed.
        let _ = tcflush(&self.file, QueueSelector::IFlush);
    }

    /// Reads the available input. Returns `None` if no input is available yet, and an empty list if the terminal was
    /// closed.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        super::read_some(&self.file)
    }

    /// Writes as many bytes as possible without blocking and removes them from `text`.
    pub fn write(&self, text: &mut Vec<u8>) -> io::Result<()> {
        super::write_some(&self.file, text)
    }

    /// Writes all bytes, waiting for the terminal as needed.
    pub fn write_all(&self, text: &mut Vec<u8>) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        while !text.is_empty() {
            self.write(text)?;
            match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for UserTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        self.restore();
    }
}
