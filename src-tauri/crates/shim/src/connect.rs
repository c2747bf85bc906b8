//! Finding the daemon and greeting it.

use crate::launch::{self, LaunchError, Launched};
use ironcurtain_protocol::{ConnectError, Hello, SocketPathError, Sockets, StdioMode};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, BufRead, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The time that the app may take to listen in the place of a daemon that has moved a session to it.
const NEXT_DEADLINE: Duration = Duration::from_secs(20);

/// Pause between two looks at whether it listens.
const NEXT_PAUSE: Duration = Duration::from_millis(5);

/// Why there is no connection, in sentences for a person.
#[derive(Debug, thiserror::Error)]
pub enum NoDaemonError {
    /// There is no place for the socket.
    #[error(transparent)]
    NoSocket(#[from] SocketPathError),
    /// The socket cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Nobody listens, and nobody could be made to.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Nobody knows who listens.
    #[error("the kernel does not say who listens on IronCurtain's socket: {0}")]
    Peer(Errno),
    /// Somebody else listens.
    #[error("user {0} listens on IronCurtain's socket, not you; nothing was sent")]
    OtherUser(u32),
}

/// A connection to this user's daemon, and the daemon where it had to be started.
pub fn to_daemon() -> Result<(UnixStream, Option<Launched>), NoDaemonError> {
    let sockets = Sockets::of_user()?;
    let (stream, launched) = match sockets.connect()? {
        Some(stream) => (stream, None),
        None => launch::and_connect(&sockets).map(|(stream, launched)| (stream, Some(launched)))?,
    };
    same_user(&stream)?;
    Ok((stream, launched))
}

/// As [`to_daemon`], once the daemon that runs has given its place to another one. None is started unless that fails to come.
pub fn to_next_daemon() -> Result<(UnixStream, Option<Launched>), NoDaemonError> {
    let sockets = Sockets::of_user()?;
    let until = Instant::now() + NEXT_DEADLINE;
    while Instant::now() < until && matches!(sockets.connect(), Ok(None)) {
        std::thread::sleep(NEXT_PAUSE);
    }
    to_daemon()
}

/// Sends the greeting, and standard input and output with it when they are handed over.
pub fn greet(stream: &UnixStream, hello: &Hello, stdio: StdioMode) -> io::Result<()> {
    let mut line = serde_json::to_vec(hello)?;
    line.push(b'\n');
    // Descriptors are refused while more than this of them are on their way, of any program of the user (`unix(7)`).
    let limit = getrlimit(Resource::Nofile);
    // With less the greeting may still arrive.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let descriptors = [stdin.as_fd(), stdout.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if stdio == StdioMode::HandedOver && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for two descriptors"));
    }
    let sent = rustix::net::sendmsg(stream, &[IoSlice::new(&line)], &mut ancillary, system::SEND)?;
    // The descriptors went with the first byte; what is left of the line is plain bytes.
    io::Write::write_all(&mut &*stream, line.get(sent..).unwrap_or_default())
}

/// A reader that takes one byte at a time, so that it never holds bytes that belong to the conversation.
pub struct ByteByByte<'a>(pub &'a UnixStream);

impl Read for ByteByByte<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0;
        stream.read(buffer.get_mut(..1).unwrap_or_default())
    }
}

impl ByteByByte<'_> {
    /// The line protocol's reader wants a [`BufRead`]; one byte of buffer is what this one has.
    pub fn buffered(self) -> impl BufRead {
        io::BufReader::with_capacity(1, self)
    }
}

/// Whoever listens must be this user: the conversation is theirs.
fn same_user(stream: &UnixStream) -> Result<(), NoDaemonError> {
    let user = system::user_of_peer(stream).map_err(NoDaemonError::Peer)?;
    if user == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(NoDaemonError::OtherUser(user))
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use rustix::net::SendFlags;
    use std::os::unix::net::UnixStream;

    pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL;
    /// Opened to be named, and not to be read.
    pub(super) const ONLY_NAMED: OFlags = OFlags::PATH;

    pub(super) fn user_of_peer(stream: &UnixStream) -> Result<u32, Errno> {
        rustix::net::sockopt::socket_peercred(stream).map(|peer| peer.uid.as_raw())
    }
}

/// Elsewhere nobody is asked who listens, and so nobody is trusted.
#[cfg(not(target_os = "linux"))]
mod system {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use rustix::net::SendFlags;
    use std::os::unix::net::UnixStream;

    pub(super) const SEND: SendFlags = SendFlags::empty();
    pub(super) const ONLY_NAMED: OFlags = OFlags::empty();

    pub(super) fn user_of_peer(_: &UnixStream) -> Result<u32, Errno> {
        Err(Errno::NOTSUP)
    }
}

/// Reading standard input waits again, which a daemon that had it has changed.
pub fn wait_for_input() {
    use rustix::fs::{fcntl_getfl, fcntl_setfl};
    // Where it cannot be changed, the client is told nothing more.
    let _ = fcntl_getfl(io::stdin()).and_then(|flags| fcntl_setfl(io::stdin(), flags - OFlags::NONBLOCK));
}

/// Returns `true` if a descriptor can be given to the daemon: a pipe or a socket. Non-blocking mode, which the daemon
/// needs, would leak to the other users of a terminal or a file.
pub fn can_be_handed_over(descriptor: impl AsFd) -> bool {
    use rustix::fs::{FileType, fcntl_getfl, fstat};
    let Ok(stat) = fstat(&descriptor) else { return false };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let opened = fcntl_getfl(&descriptor).is_ok_and(|flags| !flags.intersects(system::ONLY_NAMED));
    opened && matches!(kind, FileType::Fifo | FileType::Socket)
}
