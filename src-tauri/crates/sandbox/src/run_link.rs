//! Link between the process that launched a run (the launcher) and the process that starts the program inside the
//! sandbox.
//!
//! - The trusted process passes the link on and never reads from it.
//! - The inner process creates the run's terminal and sends it to the CLI before the program starts. After that,
//!   messages from inside are two bytes long and carry no descriptor, because the program may have taken control of the
//!   sender.
//! - Closing the link terminates the run: the inner process exits, and the sandbox exits with it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair},
    process::Signal,
};

use crate::fd_passing;

/// Terminal of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTerminal {
    /// `true` for each standard stream that is the terminal, indexed by descriptor number.
    pub streams: [bool; 3],
    /// `true` if the program starts in the terminal's foreground. A background program stops when it reads from the
    /// terminal.
    pub foreground: bool,
}

/// Outer end of the link, held by the CLI.
#[derive(Debug)]
pub struct RunLink(OwnedFd);

/// Event reported by the inner process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A signal stopped the program.
    Stopped(Signal),
    /// The program exited with this status, or 128 plus the signal number. Its terminal stays open until
    /// [`RunLink::finish`].
    Exited(u8),
    /// The inner process has exited.
    Closed,
}

/// First byte of a command to the inner process. The second byte is the argument.
const FOREGROUND: u8 = b'f';
const BACKGROUND: u8 = b'b';
const SIGNAL: u8 = b's';
const FINISH: u8 = b'q';

/// First byte of an event from the inner process. The second byte is the argument.
const STOPPED: u8 = b't';
const EXITED: u8 = b'e';

/// First byte of the initial commands: `BEGIN` carries the terminal settings, and `START` starts the program once the
/// terminal is ready.
const BEGIN: u8 = b'r';
const START: u8 = b'g';

impl RunLink {
    /// Creates a link and returns its outer and inner ends.
    ///
    /// # Errors
    /// Returns an I/O error if the link cannot be created.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(ours), theirs))
    }

    /// Sends the run's terminal settings. If `terminal` is `None`, the program starts immediately.
    ///
    /// # Errors
    /// Returns an I/O error if sending fails.
    pub fn begin(&self, terminal: Option<RunTerminal>) -> io::Result<()> {
        send_message(&self.0, [BEGIN, terminal.map_or(0, RunTerminal::bits)])
    }

    /// Waits until the inner process has created the terminal and returns the terminal's master side.
    ///
    /// # Errors
    /// Fails if the inner process has exited.
    pub fn receive_terminal(&self) -> io::Result<OwnedFd> {
        fd_passing::receive(&self.0)
    }

    /// Starts the program. The caller must have prepared the terminal.
    ///
    /// # Errors
    /// Returns an I/O error if sending fails.
    pub fn start(&self) -> io::Result<()> {
        send_message(&self.0, [START, 0])
    }

    /// Returns the next event, or `None` if none has arrived.
    ///
    /// # Errors
    /// Returns an I/O error if receiving fails.
    pub fn event(&self) -> io::Result<Option<LinkEvent>> {
        match receive_message(&self.0, RecvFlags::DONTWAIT) {
            Ok(Some([STOPPED, number])) => {
                let signal = Signal::from_named_raw(number.into());
                Ok(Some(LinkEvent::Stopped(signal.unwrap_or(Signal::STOP))))
            }
            Ok(Some([EXITED, status])) => Ok(Some(LinkEvent::Exited(status))),
            Ok(Some(_) | None) => Ok(Some(LinkEvent::Closed)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Some(LinkEvent::Closed)),
            Err(error) => Err(error),
        }
    }

    /// Resumes a stopped program in the foreground or background of the terminal.
    ///
    /// # Errors
    /// Fails if the inner process has exited.
    pub fn resume(&self, foreground: bool) -> io::Result<()> {
        send_message(&self.0, [if foreground { FOREGROUND } else { BACKGROUND }, 0])
    }

    /// Sends a signal to the program's process group.
    ///
    /// # Errors
    /// Fails if the inner process has exited.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        send_message(&self.0, [SIGNAL, u8::try_from(signal.as_raw()).unwrap_or_default()])
    }

    /// Closes the terminal of an exited program and terminates the run.
    ///
    /// # Errors
    /// Fails if the inner process has exited.
    pub fn finish(&self) -> io::Result<()> {
        send_message(&self.0, [FINISH, 0])
    }
}

impl AsFd for RunLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Command to the inner process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkCommand {
    Resume { foreground: bool },
    Signal(Signal),
    Finish,
}

/// Inner end of the link.
#[derive(Debug)]
pub(crate) struct InnerLink(OwnedFd);

impl InnerLink {
    pub(crate) fn new(link: OwnedFd) -> Self {
        Self(link)
    }

    /// Waits for the run's terminal settings. Returns `None` if the run has no terminal.
    pub(crate) fn terminal(&self) -> io::Result<Option<RunTerminal>> {
        match receive_message(&self.0, RecvFlags::empty())? {
            Some([BEGIN, bits]) => Ok(RunTerminal::from_bits(bits)),
            Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends the terminal's master side to the CLI and waits until the CLI has prepared the terminal.
    pub(crate) fn send_terminal(&self, terminal: OwnedFd) -> io::Result<()> {
        fd_passing::send(&self.0, terminal)?;
        match receive_message(&self.0, RecvFlags::empty())? {
            Some([START, _]) => Ok(()),
            Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Waits for the next command. Returns `None` if the CLI has exited.
    pub(crate) fn command(&self) -> io::Result<Option<LinkCommand>> {
        Ok(match receive_message(&self.0, RecvFlags::empty())? {
            Some([FOREGROUND, _]) => Some(LinkCommand::Resume { foreground: true }),
            Some([BACKGROUND, _]) => Some(LinkCommand::Resume { foreground: false }),
            Some([SIGNAL, number]) => Signal::from_named_raw(number.into()).map(LinkCommand::Signal),
            Some([FINISH, _]) => Some(LinkCommand::Finish),
            Some(_) | None => None,
        })
    }

    pub(crate) fn stopped(&self, signal: u8) -> io::Result<()> {
        send_message(&self.0, [STOPPED, signal])
    }

    pub(crate) fn exited(&self, status: u8) -> io::Result<()> {
        send_message(&self.0, [EXITED, status])
    }
}

impl AsFd for InnerLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl RunTerminal {
    /// Bit that is set if the run has a terminal.
    const HAS_TERMINAL: u8 = 1 << 4;
    const IN_FOREGROUND: u8 = 1 << 3;

    fn bits(self) -> u8 {
        let streams =
            self.streams.iter().rev().fold(0, |bits, is_terminal| bits << 1 | u8::from(*is_terminal));
        Self::HAS_TERMINAL | if self.foreground { Self::IN_FOREGROUND } else { 0 } | streams
    }

    fn from_bits(bits: u8) -> Option<Self> {
        let streams = [0, 1, 2].map(|number| bits >> number & 1 == 1);
        (bits & Self::HAS_TERMINAL != 0)
            .then_some(Self { streams, foreground: bits & Self::IN_FOREGROUND != 0 })
    }
}

fn send_message(link: &OwnedFd, message: [u8; 2]) -> io::Result<()> {
    loop {
        match send(link, &message, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message. Returns `None` at EOF. The kernel closes any descriptors in the message.
fn receive_message(link: &OwnedFd, flags: RecvFlags) -> io::Result<Option<[u8; 2]>> {
    let mut message = [0; 2];
    loop {
        match recv(link, &mut message, flags) {
            Ok((0, _)) => return Ok(None),
            Ok(_) => return Ok(Some(message)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_the_end_is_an_event() {
        let (outer, inner) = RunLink::pair().unwrap();
        let inner = InnerLink::new(inner);
        for streams in [[true, false, true], [false, true, false]] {
            for foreground in [false, true] {
                let terminal = RunTerminal { streams, foreground };
                outer.begin(Some(terminal)).unwrap();
                assert_eq!(inner.terminal().unwrap(), Some(terminal));
            }
        }
        outer.begin(None).unwrap();
        assert_eq!(inner.terminal().unwrap(), None);
        outer.resume(true).unwrap();
        outer.signal(Signal::TERM).unwrap();
        outer.finish().unwrap();
        let expected = [
            LinkCommand::Resume { foreground: true },
            LinkCommand::Signal(Signal::TERM),
            LinkCommand::Finish,
        ];
        for command in expected {
            assert_eq!(inner.command().unwrap(), Some(command));
        }
        assert_eq!(outer.event().unwrap(), None);
        inner.stopped(20).unwrap();
        inner.exited(143).unwrap();
        assert_eq!(outer.event().unwrap(), Some(LinkEvent::Stopped(Signal::TSTP)));
        assert_eq!(outer.event().unwrap(), Some(LinkEvent::Exited(143)));
        drop(inner);
        assert_eq!(outer.event().unwrap(), Some(LinkEvent::Closed));
    }

    #[test]
    fn a_descriptor_from_inside_is_not_accepted_later() {
        let (outer, inner) = RunLink::pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        fd_passing::send(&inner, OwnedFd::from(writer)).unwrap();
        assert_eq!(outer.event().unwrap(), Some(LinkEvent::Closed));
        // EOF shows that the kernel has closed the only copy of the write end.
        assert_eq!(io::read_to_string(reader).unwrap(), "");
    }
}
