//! The command line's control connection to the trusted process.

use crate::error_report::Refused;
#[cfg(target_os = "linux")]
use crate::note_stream::NoteStream;
use anyhow::{Context, anyhow, bail};
#[cfg(target_os = "linux")]
use ironcurtain_protocol::{AttachNote, PairingConfirmed, RunHello};
use ironcurtain_protocol::{
    FrameError, Hello, Purpose, Reply, Request, RequestFrame, Sockets, VERSION, Welcome, read_frame,
    write_frame,
};
#[cfg(target_os = "linux")]
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
#[cfg(target_os = "linux")]
use std::{
    io::{IoSlice, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// Maximum time to wait for the trusted process to exit: its own shutdown timeout plus a margin.
const SHUTDOWN_TIMEOUT: Duration =
    ironcurtain_daemon::SHUTDOWN_TIMEOUT.saturating_add(Duration::from_secs(3));

/// Interval at which a stopping trusted process is asked for the remaining sandbox scans.
const SCAN_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Timeout for a reply. The slowest requests are a revocation, which may restart a server, and the end of a login: it may
/// wait for a renewal, the keyring and the authorization server. Each of these steps has its own timeout.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Timeout for the handshake of the control protocol.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(target_os = "linux")]
fn user_of_peer(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Rejects every peer, because peer credentials are unavailable on this platform.
#[cfg(not(target_os = "linux"))]
fn user_of_peer(_: &UnixStream) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Converts a failed read or write to an error. A timeout error includes the limit (`bound`).
fn timeout_error(problem: FrameError, bound: Option<Duration>) -> anyhow::Error {
    match (problem, bound) {
        (FrameError::TimedOut, Some(bound)) => {
            anyhow!(
                "IronCurtain did not answer within {} s; if this persists, kill its process and start it again",
                bound.as_secs()
            )
        }
        (problem, _) => anyhow::Error::new(problem).context("IronCurtain did not answer"),
    }
}

/// Connection to the trusted process, after the handshake.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects to this user's trusted process. Fails if it is not running.
    pub fn open() -> anyhow::Result<Self> {
        Self::open_if_running()?
            .context("IronCurtain is not running; start the app or run `ironcurtain daemon`")
    }

    /// Connects to this user's trusted process. Returns `None` if it is not running.
    pub fn open_if_running() -> anyhow::Result<Option<Self>> {
        let Some(mut connection) = Self::connect()? else { return Ok(None) };
        connection.send(&Hello { version: VERSION, purpose: Purpose::Control })?;
        match connection.answer()? {
            Welcome::Accepted { .. } => {
                connection.stream.get_ref().set_read_timeout(Some(TIMEOUT))?;
                Ok(Some(connection))
            }
            Welcome::Refused(refusal) => bail!("{}", refusal.message),
        }
    }

    /// Connects without a handshake. Returns `None` if the trusted process is not running.
    fn connect() -> anyhow::Result<Option<Self>> {
        let Some(stream) = Sockets::for_current_user()?.connect()? else { return Ok(None) };
        let user = user_of_peer(&stream)?;
        if user != rustix::process::geteuid().as_raw() {
            bail!("the socket of your IronCurtain belongs to another user (uid {user})");
        }
        stream.set_read_timeout(Some(HELLO_TIMEOUT))?;
        stream.set_write_timeout(Some(HELLO_TIMEOUT))?;
        Ok(Some(Self { stream: BufReader::new(stream) }))
    }

    /// Sends a message with at most five descriptors attached to its first byte.
    #[cfg(target_os = "linux")]
    fn send_with(&mut self, message: &impl Serialize, descriptors: &[OwnedFd]) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            bail!("failed to attach the file descriptors to the message: too many");
        }
        let stream = self.stream.get_mut();
        let sent = sendmsg(&*stream, &[IoSlice::new(&line)], &mut ancillary, SendFlags::empty())?;
        Ok(stream.write_all(line.get(sent..).unwrap_or_default())?)
    }

    /// Sends a request and returns the reply, or the error [`Refused`] if the request was refused.
    pub fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        self.send(&RequestFrame { id: 1, request })?;
        let answer: ironcurtain_protocol::ReplyFrame = self.answer()?;
        if let Reply::Failed { code, message } = answer.reply {
            return Err(Refused { code, message }.into());
        }
        Ok(answer.reply)
    }

    fn send(&mut self, message: &impl Serialize) -> anyhow::Result<()> {
        let bound = self.stream.get_ref().write_timeout()?;
        write_frame(self.stream.get_mut(), message).map_err(|problem| timeout_error(problem, bound))
    }

    fn answer<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let bound = self.stream.get_ref().read_timeout()?;
        read_frame(&mut self.stream).map_err(|problem| timeout_error(problem, bound))
    }

    /// Shuts down the trusted process and waits until it has exited so that a new process can start.
    ///
    /// Calls `report_scans` with the remaining sandbox scans whenever they change.
    pub fn stop(mut self, report_scans: impl Fn(&[String])) -> anyhow::Result<Reply> {
        let reply = self.ask(Request::Shutdown)?;
        let (started, mut reported) = (Instant::now(), Vec::new());
        while started.elapsed() < SHUTDOWN_TIMEOUT {
            self.stream.get_ref().set_read_timeout(Some(SCAN_POLL_INTERVAL))?;
            match self.stream.read(&mut [0]) {
                Ok(0) => return Ok(reply),
                // The trusted process was killed, so it is no longer running.
                Err(problem) if problem.kind() == io::ErrorKind::ConnectionReset => return Ok(reply),
                Ok(_) => bail!("unexpected message from IronCurtain while it was stopping"),
                Err(problem)
                    if matches!(problem.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                {
                    self.stream.get_ref().set_read_timeout(Some(SHUTDOWN_TIMEOUT))?;
                    match self.ask(Request::FinalChecks) {
                        Ok(Reply::FinalChecks(words)) if words != reported => {
                            report_scans(&words);
                            reported = words;
                        }
                        // If the trusted process exited before replying, the next read detects it.
                        Ok(_) | Err(_) => {}
                    }
                }
                Err(problem) => {
                    return Err(problem)
                        .context("IronCurtain is stopping, but waiting for it to exit failed");
                }
            }
        }
        bail!("IronCurtain is stopping, but did not exit within {} s", SHUTDOWN_TIMEOUT.as_secs())
    }
}

/// Connection for a requested run that has not started yet.
#[cfg(target_os = "linux")]
pub struct StartedRun(Connection);

#[cfg(target_os = "linux")]
impl StartedRun {
    /// Connects to this user's trusted process and requests a run. `descriptors` must be in the order defined by
    /// [`Purpose::Run`].
    pub fn request(run: &RunHello, descriptors: Vec<OwnedFd>) -> anyhow::Result<Self> {
        let mut connection = Connection::connect()?
            .context("IronCurtain is not running; start the app or run `ironcurtain daemon`")?;
        let hello = Hello { version: VERSION, purpose: Purpose::Run(run.clone()) };
        connection.send_with(&hello, &descriptors)?;
        Ok(Self(connection))
    }

    /// Waits until the program has started. Returns the run's note stream and session id.
    pub fn started(self) -> anyhow::Result<(NoteStream, String)> {
        let Self(mut connection) = self;
        connection.stream.get_ref().set_read_timeout(Some(TIMEOUT))?;
        match connection.answer()? {
            Welcome::Accepted { session, .. } => {
                let read = connection.stream.buffer().to_vec();
                let notes = NoteStream::new(connection.stream.into_inner(), &read)?;
                Ok((notes, session.unwrap_or_default()))
            }
            Welcome::Refused(refusal) => bail!("{}", refusal.message),
        }
    }
}

#[cfg(target_os = "linux")]
impl AsFd for StartedRun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.stream.get_ref().as_fd()
    }
}

/// Connection for `attach` or `relay`. It carries only notes after the handshake.
#[cfg(target_os = "linux")]
pub struct LinkedConnection(Connection);

#[cfg(target_os = "linux")]
impl LinkedConnection {
    /// Connects to this user's trusted process and passes it the socket to the other machine.
    pub fn open(purpose: Purpose, link: OwnedFd) -> anyhow::Result<Self> {
        let mut connection = Connection::connect()?
            .context("IronCurtain is not running; start the app or run `ironcurtain daemon`")?;
        connection.send_with(&Hello { version: VERSION, purpose }, &[link])?;
        match connection.answer()? {
            Welcome::Accepted { .. } => {
                connection.stream.get_ref().set_read_timeout(None)?;
                Ok(Self(connection))
            }
            Welcome::Refused(refusal) => bail!("{}", refusal.message),
        }
    }

    /// Waits for the next note.
    pub fn next(&mut self) -> anyhow::Result<AttachNote> {
        self.0.answer()
    }

    /// Returns a sender for the pairing code.
    pub fn code_sender(&self) -> io::Result<CodeSender> {
        self.0.stream.get_ref().try_clone().map(CodeSender)
    }
}

/// Sender that passes the user's pairing code to the trusted process.
#[cfg(target_os = "linux")]
pub struct CodeSender(UnixStream);

#[cfg(target_os = "linux")]
impl CodeSender {
    /// Sends the code.
    pub fn send(&mut self, code: String) -> Result<(), FrameError> {
        write_frame(&mut self.0, &PairingConfirmed { code })
    }
}
