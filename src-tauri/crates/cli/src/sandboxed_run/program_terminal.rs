//! Controlling side of the run's pseudoterminal. Bytes written to this side are the program's input.

use super::terminal_modes::TerminalModes;
use super::user_terminal::UserTerminal;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Controlling side of the program's pseudoterminal.
pub struct ProgramTerminal {
    file: OwnedFd,
    /// Input that the terminal has not accepted yet.
    pub input: Vec<u8>,
    pub modes: TerminalModes,
    size: Option<Winsize>,
}

impl ProgramTerminal {
    /// Takes the controlling side of the program's terminal and sets the modes and size of the user's terminal on it.
    pub fn new(file: OwnedFd, user: &UserTerminal) -> io::Result<Self> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        let mut program = Self { file, input: Vec::new(), modes: TerminalModes::default(), size: None };
        // If this process is in the background, the user's terminal has a different program's modes.
        let mut modes = if user.is_ours() { user.own_modes().clone() } else { tcgetattr(&program.file)? };
        if user.is_shared() {
            // A shared user terminal keeps output processing on and converts line ends itself.
            modes.output_modes -= OutputModes::OPOST;
        }
        tcsetattr(&program.file, OptionalActions::Now, &modes)?;
        program.follow_size(user)?;
        Ok(program)
    }

    /// Sets the program's terminal to the size of the user's terminal.
    pub fn follow_size(&mut self, user: &UserTerminal) -> io::Result<()> {
        let size = user.size()?;
        self.size = Some(size);
        Ok(tcsetwinsize(&self.file, size)?)
    }

    /// Makes the program redraw its screen by briefly changing the terminal's size, because only a size change sends
    /// SIGWINCH.
    pub fn redraw(&mut self) -> io::Result<()> {
        let Some(size) = self.size else { return Ok(()) };
        let other = Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size };
        tcsetwinsize(&self.file, other)?;
        Ok(tcsetwinsize(&self.file, size)?)
    }

    /// Returns `true` if the terminal is in canonical mode, in which the program reads whole lines. Programs that read
    /// single keys usually draw the whole screen.
    pub fn reads_lines(&self) -> bool {
        tcgetattr(&self.file).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Reads the available output. Returns `None` if no output is available yet, and an empty list if no process in the
    /// sandbox has the terminal open.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let output = super::read_some(&self.file)?;
        self.modes.read(output.as_deref().unwrap_or_default());
        Ok(output)
    }

    /// Writes as much pending input as possible without blocking.
    pub fn type_input(&mut self) -> io::Result<()> {
        super::write_some(&self.file, &mut self.input)
    }
}

impl AsFd for ProgramTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
