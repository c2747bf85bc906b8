//! Second pseudoterminal, on which the trusted process asks the run's questions.
//!
//! - INVARIANT: the sandboxed program cannot access this terminal. While a question is open, all input goes to the
//!   question.

use super::user_terminal::UserTerminal;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Input that denies a question by clearing the line and sending an empty answer.
const DENY: &[u8] = b"\x15\r";

/// Minimum time for which a hidden question has a different size. The trusted process checks the size every 200 ms.
const NOTICE_TIME: Duration = Duration::from_millis(500);

/// The user's side of the pseudoterminal for questions.
pub struct QuestionTerminal {
    file: OwnedFd,
    input: Vec<u8>,
    /// Set while the question is not on the user's terminal.
    hidden: Option<Hidden>,
}

struct Hidden {
    size: Winsize,
    since: Instant,
    /// `true` if the trusted process has drawn something since then.
    is_drawn: bool,
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
        let terminal = Self { file, input: Vec::new(), hidden: None };
        terminal.follow_size(user)?;
        Ok((terminal, theirs))
    }

    /// Sets the terminal to the size of the user's terminal, unless the question is hidden.
    pub fn follow_size(&self, user: &UserTerminal) -> io::Result<()> {
        if self.hidden.is_some() { Ok(()) } else { Ok(tcsetwinsize(&self.file, user.size()?)?) }
    }

    /// Ignores input from now on, because the question is not on the user's terminal. Sets a different size, which makes the
    /// trusted process draw the question again.
    pub fn hide(&mut self, user: &UserTerminal) -> io::Result<()> {
        if self.hidden.is_none() {
            let size = hidden_size(user.size()?);
            tcsetwinsize(&self.file, size)?;
            self.hidden = Some(Hidden { size, since: Instant::now(), is_drawn: false });
        }
        Ok(())
    }

    /// Accepts input again once the trusted process has drawn the hidden question. Sets the real size, after which the
    /// trusted process draws the question once more and accepts answers only when it has been visible for a moment.
    pub fn show(&mut self, user: &UserTerminal) -> io::Result<()> {
        let size = user.size()?;
        let is_same =
            |hidden: &Hidden| (hidden.size.ws_row, hidden.size.ws_col) == (size.ws_row, size.ws_col);
        if self.hidden.as_ref().is_some_and(is_same) {
            // The user's terminal has the hidden size now, so the trusted process would not notice a change.
            self.hidden = None;
            return self.hide(user);
        }
        if self.hidden.as_ref().is_some_and(|hidden| hidden.is_drawn && hidden.since.elapsed() >= NOTICE_TIME)
        {
            self.hidden = None;
            self.follow_size(user)?;
        }
        Ok(())
    }

    /// Returns `true` if input is ignored.
    pub fn is_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// Reads the available text. Returns `None` if no text is available yet, and an empty list if the trusted process
    /// has closed its side.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let text = super::read_some(&self.file)?;
        if let Some(hidden) = &mut self.hidden {
            hidden.is_drawn |= text.as_ref().is_some_and(|text| !text.is_empty());
        }
        Ok(text)
    }

    /// Writes the user's input, unless the question is hidden. Ctrl-C and Ctrl-D deny the question.
    pub fn type_input(&mut self, typed: &[u8]) -> io::Result<()> {
        if self.hidden.is_some() {
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

/// Returns a size that the trusted process distinguishes from `size`. It takes a terminal without a size for one of 80
/// columns and 24 rows.
fn hidden_size(size: Winsize) -> Winsize {
    match size.ws_col == 0 || size.ws_row == 0 {
        true => Winsize { ws_col: 80, ws_row: 25, ..size },
        // A size of 1 row becomes 2 rows, because 0 rows are no size.
        false => Winsize { ws_row: if size.ws_row == 1 { 2 } else { size.ws_row ^ 1 }, ..size },
    }
}

impl AsFd for QuestionTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
