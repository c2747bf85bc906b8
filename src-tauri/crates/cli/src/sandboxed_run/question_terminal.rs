//! Second pseudoterminal, on which the trusted process asks the run's questions.
//!
//! - INVARIANT: the sandboxed program cannot access this terminal. While a question is open, all input goes to the
//!   question.

use super::user_terminal::UserTerminal;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcsetwinsize;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Input that denies a question by clearing the line and sending an empty answer.
const DENY: &[u8] = b"\x15\r";

/// The user's side of the pseudoterminal for questions.
pub struct QuestionTerminal {
    file: OwnedFd,
    input: Vec<u8>,
}

impl QuestionTerminal {
    /// Creates a pseudoterminal with the size of the user's terminal. Also returns the descriptor for the trusted
    /// process.
    pub fn new(user: &UserTerminal) -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let file = openpt(flags)?;
        unlockpt(&file)?;
        let theirs = ioctl_tiocgptpeer(&file, flags)?;
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        let terminal = Self { file, input: Vec::new() };
        terminal.follow_size(user)?;
        Ok((terminal, theirs))
    }

    pub fn follow_size(&self, user: &UserTerminal) -> io::Result<()> {
        Ok(tcsetwinsize(&self.file, user.size()?)?)
    }

    /// Reads the available text. Returns `None` if no text is available yet, and an empty list if the trusted process
    /// has closed its side.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        super::read_some(&self.file)
    }

    /// Writes the user's input. Ctrl-C and Ctrl-D deny the question.
    pub fn type_input(&mut self, typed: &[u8]) -> io::Result<()> {
        for byte in typed {
            match byte {
                0x03 | 0x04 => self.input.extend(DENY),
                byte => self.input.push(*byte),
            }
        }
        super::write_some(&self.file, &mut self.input)?;
        // The terminal accepts input faster than a user types, so only the rest of a long paste is discarded.
        self.input.clear();
        Ok(())
    }
}

impl AsFd for QuestionTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
