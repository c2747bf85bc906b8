//! Connects to the daemon and sends the hello message.

use crate::launch::{self, LaunchError, LaunchedDaemon};
use ironcurtain_protocol::{ConnectError, Hello, RUN_SOCKET, SocketPathError, Sockets, StdioMode};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, BufRead, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time to wait for the app to start listening after a daemon hands a session over to it.
const NEXT_DAEMON_TIMEOUT: Duration = Duration::from_secs(20);

/// Delay between attempts to connect to the app.
const NEXT_DAEMON_PAUSE: Duration = Duration::from_millis(5);

/// Failure to connect to the daemon, worded for the user.
#[derive(Debug, thiserror::Error)]
pub enum ConnectDaemonError {
    #[error(transparent)]
    NoSocket(#[from] SocketPathError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("failed to connect to IronCurtain, which runs this program in a sandbox: {0}")]
    InRun(io::Error),
    /// The kernel did not report the listening process's user.
    #[error("failed to determine the owner of IronCurtain's socket: {0}")]
    Peer(Errno),
    /// The listening process belongs to another user.
    #[error("IronCurtain's socket belongs to another user (uid {0}); nothing was sent")]
    OtherUser(u32),
}

/// Returns `true` if this program is in a sandboxed run.
pub fn is_in_run() -> bool {
    Path::new(RUN_SOCKET).exists()
}

/// Connects to this user's daemon, starting it if necessary. Also returns the daemon's process if this call started it.
/// In a sandboxed run, connects to the daemon that started the run.
pub fn connect_to_daemon() -> Result<(UnixStream, Option<LaunchedDaemon>), ConnectDaemonError> {
    if is_in_run() {
        let stream = UnixStream::connect(RUN_SOCKET).map_err(ConnectDaemonError::InRun)?;
        check_same_user(&stream)?;
        return Ok((stream, None));
    }
    let sockets = Sockets::for_current_user()?;
    let (stream, launched) = match sockets.connect()? {
        Some(stream) => (stream, None),
        None => launch::start_and_connect(&sockets).map(|(stream, launched)| (stream, Some(launched)))?,
    };
    check_same_user(&stream)?;
    Ok((stream, launched))
}

/// Connects to the daemon that replaces the running daemon. Starts a daemon only if none is listening after
/// [`NEXT_DAEMON_TIMEOUT`].
pub fn connect_to_next_daemon() -> Result<(UnixStream, Option<LaunchedDaemon>), ConnectDaemonError> {
    let sockets = Sockets::for_current_user()?;
    let deadline = Instant::now() + NEXT_DAEMON_TIMEOUT;
    while Instant::now() < deadline && matches!(sockets.connect(), Ok(None)) {
        std::thread::sleep(NEXT_DAEMON_PAUSE);
    }
    connect_to_daemon()
}

/// Sends the hello message, with standard input and output attached if they are handed over.
pub fn send_hello(stream: &UnixStream, hello: &Hello, stdio: StdioMode) -> io::Result<()> {
    let mut line = serde_json::to_vec(hello)?;
    line.push(b'\n');
    // `sendmsg` fails if more than `RLIMIT_NOFILE` descriptors of the user's processes are in flight (`unix(7)`).
    let limit = getrlimit(Resource::Nofile);
    // Ignores the error: the current limit may suffice.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let descriptors = [stdin.as_fd(), stdout.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if stdio == StdioMode::HandedOver && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for two descriptors"));
    }
    let sent = rustix::net::sendmsg(stream, &[IoSlice::new(&line)], &mut ancillary, system::SEND)?;
    // The descriptors are attached to the first byte, so the rest of the line can be written normally.
    io::Write::write_all(&mut &*stream, line.get(sent..).unwrap_or_default())
}

/// Reads one byte at a time so that no bytes of the MCP conversation are buffered.
pub struct UnbufferedReader<'a>(pub &'a UnixStream);

impl Read for UnbufferedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0;
        stream.read(buffer.get_mut(..1).unwrap_or_default())
    }
}

impl UnbufferedReader<'_> {
    /// Returns a [`BufRead`] with a buffer of one byte.
    pub fn buffered(self) -> impl BufRead {
        io::BufReader::with_capacity(1, self)
    }
}

/// Checks that the listening process belongs to this user.
fn check_same_user(stream: &UnixStream) -> Result<(), ConnectDaemonError> {
    let user = system::peer_user(stream).map_err(ConnectDaemonError::Peer)?;
    if user == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(ConnectDaemonError::OtherUser(user))
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use rustix::net::SendFlags;
    use std::os::unix::net::UnixStream;

    pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL;
    /// Flag that opens a descriptor without access to the file's content.
    pub(super) const ONLY_NAMED: OFlags = OFlags::PATH;

    pub(super) fn peer_user(stream: &UnixStream) -> Result<u32, Errno> {
        rustix::net::sockopt::socket_peercred(stream).map(|peer| peer.uid.as_raw())
    }
}

/// Peer credentials are unavailable on this platform, so every peer is rejected.
#[cfg(not(target_os = "linux"))]
mod system {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use rustix::net::SendFlags;
    use std::os::unix::net::UnixStream;

    pub(super) const SEND: SendFlags = SendFlags::empty();
    pub(super) const ONLY_NAMED: OFlags = OFlags::empty();

    pub(super) fn peer_user(_: &UnixStream) -> Result<u32, Errno> {
        Err(Errno::NOTSUP)
    }
}

/// Clears `O_NONBLOCK` on standard input. An earlier daemon may have set it on the shared open file description.
pub fn wait_for_input() {
    use rustix::fs::{fcntl_getfl, fcntl_setfl};
    // Ignores the error: in the worst case, the client's requests get no answer.
    let _ = fcntl_getfl(io::stdin()).and_then(|flags| fcntl_setfl(io::stdin(), flags - OFlags::NONBLOCK));
}

/// Returns `true` if a descriptor can be passed to the daemon: it must be an open pipe or socket. The daemon sets
/// `O_NONBLOCK`. On a terminal or file, that would affect other processes that use it.
pub fn can_be_handed_over(descriptor: impl AsFd) -> bool {
    use rustix::fs::{FileType, fcntl_getfl, fstat};
    let Ok(stat) = fstat(&descriptor) else { return false };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let opened = fcntl_getfl(&descriptor).is_ok_and(|flags| !flags.intersects(system::ONLY_NAMED));
    opened && matches!(kind, FileType::Fifo | FileType::Socket)
}
