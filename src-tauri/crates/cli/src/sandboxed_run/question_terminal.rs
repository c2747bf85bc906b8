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
use std::time::{Duration, Instant};

/// Input that denies a question by clearing the line and sending an empty answer.
const DENY: &[u8] = b"\x15\r";

/// Time without input after which a question that was not on the screen accepts an answer. The same time as for a new
/// question.
const QUIET_PERIOD: Duration = Duration::from_millis(500);

/// Maximum number of bytes of the open questions' text that are kept. Enough for several large screens.
const MAX_TEXT: usize = 256 * 1024;

/// The user's side of the pseudoterminal for questions.
pub struct QuestionTerminal {
    file: OwnedFd,
    input: Vec<u8>,
    /// Text of the open questions, to draw them again.
    text: Vec<u8>,
    /// Time until which input is ignored, if a question was drawn again.
    quiet_until: Option<Instant>,
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
        let terminal = Self { file, input: Vec::new(), text: Vec::new(), quiet_until: None };
        terminal.follow_size(user)?;
        Ok((terminal, theirs))
    }

    /// Sets the terminal to the size of the user's terminal. After a change, the trusted process draws the question again.
    pub fn follow_size(&self, user: &UserTerminal) -> io::Result<()> {
        Ok(tcsetwinsize(&self.file, user.size()?)?)
    }

    /// Returns the text of the open questions. Ignores input until none has arrived for [`QUIET_PERIOD`], because the
    /// question was not on the screen while the trusted process waited for that.
    pub fn draw_again(&mut self) -> &[u8] {
        self.quiet_until = Some(Instant::now() + QUIET_PERIOD);
        &self.text
    }

    /// Forgets the text after all questions have ended.
    pub fn forget_text(&mut self) {
        self.text.clear();
        self.quiet_until = None;
    }

    /// Reads the available text. Returns `None` if no text is available yet, and an empty list if the trusted process
    /// has closed its side.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let text = super::read_some(&self.file)?;
        self.text.extend(text.iter().flatten());
        let excess = self.text.len().saturating_sub(MAX_TEXT);
        self.text.drain(..excess);
        Ok(text)
    }

    /// Writes the user's input, unless it is ignored. Ctrl-C and Ctrl-D deny the question.
    pub fn type_input(&mut self, typed: &[u8]) -> io::Result<()> {
        if self.quiet_until.is_some_and(|until| Instant::now() < until) {
            self.quiet_until = Some(Instant::now() + QUIET_PERIOD);
            return Ok(());
        }
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
