//! The run's terminal, from outside: what is written to it is typed to the program.

use super::terminal_modes::TerminalModes;
use super::user_terminal::UserTerminal;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The run's terminal.
pub struct ProgramTerminal {
    file: OwnedFd,
    /// Input that the program's terminal has not taken yet.
    pub input: Vec<u8>,
    pub modes: TerminalModes,
    size: Option<Winsize>,
}

impl ProgramTerminal {
    /// Prepares the terminal like the user's.
    pub fn new(file: OwnedFd, user: &UserTerminal) -> io::Result<Self> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        let mut program = Self { file, input: Vec::new(), modes: TerminalModes::default(), size: None };
        // In the background, the user's terminal has the modes of another program.
        let mut modes = if user.is_ours() { user.own_modes().clone() } else { tcgetattr(&program.file)? };
        if user.is_shared() {
            // The user's terminal converts line ends.
            modes.output_modes -= OutputModes::OPOST;
        }
        tcsetattr(&program.file, OptionalActions::Now, &modes)?;
        program.follow_size(user)?;
        Ok(program)
    }

    /// Takes over the size of the user's terminal.
    pub fn follow_size(&mut self, user: &UserTerminal) -> io::Result<()> {
        let size = user.size()?;
        self.size = Some(size);
        Ok(tcsetwinsize(&self.file, size)?)
    }

    /// Has the program draw its screen again: a program is not notified of a size that it already has.
    pub fn redraw(&mut self) -> io::Result<()> {
        let Some(size) = self.size else { return Ok(()) };
        let other = Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size };
        tcsetwinsize(&self.file, other)?;
        Ok(tcsetwinsize(&self.file, size)?)
    }

    /// Returns `true` if the program reads whole lines. A program that reads single keys usually draws the screen itself.
    pub fn reads_lines(&self) -> bool {
        tcgetattr(&self.file).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Reads available output. Returns `None` if there is none, and an empty list once nothing inside has the terminal open.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let output = super::read_some(&self.file)?;
        self.modes.read(output.as_deref().unwrap_or_default());
        Ok(output)
    }

    /// Types as much of the input as possible without waiting.
    pub fn type_input(&mut self) -> io::Result<()> {
        super::write_some(&self.file, &mut self.input)
    }
}

impl AsFd for ProgramTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
