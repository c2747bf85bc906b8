//! Terminal device: its size, modes and input. Discards input that arrives within half a second of a change.
//!
//! - INVARIANT: the terminal's original modes are restored whenever the process stops using the terminal
//!   ([`Tty::restore`]).
//! - Descriptors that are not terminals also work, but have no size and no modes.

use super::Inbox;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without input after which an answer is accepted. Nobody reads a question faster.
const QUIET_PERIOD: Duration = Duration::from_millis(500);

/// Interval at which the size and the foreground process group are checked.
const TICK: Duration = Duration::from_millis(200);

/// Maximum length of an answer, in bytes. A longer line is an invalid answer.
const MAX_LEN: usize = 4096;

/// Size to assume if the terminal does not report one.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The terminal on which questions are drawn and answered.
#[derive(Debug)]
pub(super) struct Tty {
    input: File,
    output: File,
    /// The terminal's original modes while they are changed, otherwise `None`.
    original_modes: Mutex<Option<Termios>>,
    /// `true` if the device supports cursor movement.
    has_cursor_control: bool,
    /// Number of lines in the last drawing, for erasing it.
    drawn_lines: AtomicUsize,
}

/// Reason no line could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoInput {
    /// The question was closed.
    QuestionClosed,
    /// The terminal was resized.
    Resized,
    /// The input ended or the terminal was closed.
    EndOfInput,
}

impl From<io::Error> for NoInput {
    // An output error means that the terminal was closed.
    fn from(_: io::Error) -> Self {
        Self::EndOfInput
    }
}

impl Tty {
    pub(super) fn new(input: File, output: File) -> Self {
        let has_cursor_control =
            isatty(&output) && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            input,
            output,
            original_modes: Mutex::default(),
            has_cursor_control,
            drawn_lines: AtomicUsize::new(0),
        }
    }

    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            Ok(_) | Err(_) => DEFAULT_SIZE,
        }
    }

    /// Draws lines and stores their number for [`Self::erase`].
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        self.drawn_lines.store(lines.len() + 1, Ordering::Relaxed);
        self.write(&format!("\n{}\n", lines.join("\n")))
    }

    /// Writes text below the drawn lines.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        (&self.output).write_all(text.as_bytes())
    }

    /// Erases the last drawing. If the device has no cursor control, starts a new line instead.
    pub(super) fn erase(&self) -> io::Result<()> {
        let lines = self.drawn_lines.load(Ordering::Relaxed);
        if self.has_cursor_control { self.write(&format!("\r\x1b[{lines}A\x1b[J")) } else { self.write("\n") }
    }

    /// Clears the whole screen. After a resize, [`Self::erase`] would not work, because lines have moved.
    pub(super) fn clear(&self) -> io::Result<()> {
        if self.has_cursor_control { self.write("\x1b[H\x1b[2J") } else { self.write("\n") }
    }

    /// Discards input until none has arrived for [`QUIET_PERIOD`].
    pub(super) fn wait_until_quiet(&self, inbox: &Inbox, size: Size) -> Result<(), NoInput> {
        let _quiet = RawModeGuard::begin(self, inbox, size)?;
        let mut until = Instant::now() + QUIET_PERIOD;
        loop {
            match self.wait(inbox, size, Some(until))? {
                false => return Ok(()),
                true => {
                    self.read()?;
                    until = Instant::now() + QUIET_PERIOD;
                }
            }
        }
    }

    /// Waits for a line of input and returns it.
    pub(super) fn line(&self, inbox: &Inbox, size: Size) -> Result<String, NoInput> {
        let mut line = Vec::new();
        loop {
            self.wait(inbox, size, None)?;
            let Some(typed) = self.read()? else { continue };
            line.extend(typed);
            // End of input and an overlong line yield an empty line, which is not a valid answer.
            let whole = line.iter().position(|byte| *byte == b'\n');
            if let Some(end) = whole.or((line.is_empty() || line.len() > MAX_LEN).then_some(0)) {
                return Ok(String::from_utf8_lossy(line.get(..end).unwrap_or_default()).into_owned());
            }
        }
    }

    /// Restores the terminal's original modes and discards pending input.
    pub(super) fn restore(&self) {
        if let Some(own) = self.original_modes.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Fails only if the terminal was closed. A closed terminal has no modes to restore.
            let _ = tcsetattr(&self.input, OptionalActions::Flush, &own);
        }
    }

    /// Waits for input until the given time. Returns `false` if no input arrived.
    fn wait(&self, inbox: &Inbox, size: Size, until: Option<Instant>) -> Result<bool, NoInput> {
        loop {
            let left = until.map_or(TICK, |until| until.saturating_duration_since(Instant::now()).min(TICK));
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let input = if self.is_foreground() { PollFlags::IN } else { PollFlags::empty() };
            let mut waited = [PollFd::new(&self.input, input), PollFd::new(inbox, PollFlags::IN)];
            match poll(&mut waited, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Err(NoInput::EndOfInput),
            }
            let [typed, woken] = waited.map(|one| one.revents());
            if !woken.is_empty() && inbox.is_closed() {
                return Err(NoInput::QuestionClosed);
            }
            if self.size() != size {
                return Err(NoInput::Resized);
            }
            if typed.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return Ok(true);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
        }
    }

    /// Reads the available bytes. Reading zero bytes means an empty line on a terminal and end of input on other
    /// descriptors.
    fn read(&self) -> Result<Option<Vec<u8>>, NoInput> {
        let mut piece = [0; MAX_LEN];
        match rustix::io::read(&self.input, &mut piece) {
            Ok(0) if !isatty(&self.input) => Err(NoInput::EndOfInput),
            Ok(n) => Ok(Some(piece.get(..n).unwrap_or_default().to_vec())),
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(_) => Err(NoInput::EndOfInput),
        }
    }

    /// Returns `true` if this process group is in the foreground. Otherwise, the kernel would stop this process when
    /// it reads from the terminal.
    fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.input).map_or(true, |group| group == rustix::process::getpgrp())
    }
}

/// Guard that turns off echo and line buffering. Dropping it restores the modes.
struct RawModeGuard<'a>(&'a Tty);

impl<'a> RawModeGuard<'a> {
    fn begin(tty: &'a Tty, inbox: &Inbox, size: Size) -> Result<Self, NoInput> {
        while !tty.is_foreground() {
            tty.wait(inbox, size, Some(Instant::now() + TICK))?;
        }
        if let Ok(own) = tcgetattr(&tty.input) {
            let mut quiet = own.clone();
            quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
            quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
            *tty.original_modes.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
            // `TCSETSF` also discards the input typed so far.
            tcsetattr(&tty.input, OptionalActions::Flush, &quiet).map_err(|_| NoInput::EndOfInput)?;
        }
        Ok(Self(tty))
    }
}

impl Drop for RawModeGuard<'_> {
    fn drop(&mut self) {
        self.0.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbox::channel;
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::fs::OpenOptions;

    /// Returns `true` if a line can be read within `bound`.
    fn has_input(tty: &Tty, bound: Duration) -> bool {
        let bound = Timespec::try_from(bound).unwrap();
        poll(&mut [PollFd::new(&tty.input, PollFlags::IN)], Some(&bound)).unwrap() == 1
    }

    #[test]
    fn each_mode_change_discards_earlier_input() {
        let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&hands).unwrap();
        unlockpt(&hands).unwrap();
        let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
        let user = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let tty = Tty::new(user.try_clone().unwrap(), user);
        let (_outbox, inbox) = channel().unwrap();
        let types = || {
            rustix::io::write(&hands, b"1\n").unwrap();
            assert!(has_input(&tty, Duration::from_secs(10)), "typed input arrives");
        };
        types();
        let quiet = RawModeGuard::begin(&tty, &inbox, tty.size()).unwrap();
        assert!(!has_input(&tty, Duration::ZERO), "earlier input is read in the half second");
        types();
        drop(quiet);
        assert!(
            !has_input(&tty, Duration::ZERO),
            "input typed during the half second is left for the next reader"
        );
        types();
        assert_eq!(tty.read().unwrap().unwrap(), b"1\n");
    }
}
