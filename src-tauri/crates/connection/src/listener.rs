//! Listening socket of the daemon: accepts peers and reads their hello messages.
//!
//! - One daemon runs per user: it locks both the state directory and the socket.
//! - Refuses a peer that belongs to another user before reading its input.

use ironcurtain_mcp::wire::{Input, LineSink, LineSource, Output};
use ironcurtain_paths::bounded_read;
use ironcurtain_protocol::{Hello, HelloRefusal, MAX_FRAME_BYTES, RefusalCode, ShimNote, VERSION, Welcome};
use rustix::fs::FlockOperation;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Maximum time to wait for a peer's hello message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Flags that keep received descriptors from leaking into child processes. On platforms without `CMSG_CLOEXEC`, the
/// daemon starts no child processes.
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::DONTWAIT;

/// Maximum length of a hello message, in bytes.
const MAX_HELLO_LEN: usize = 64 * 1024;

/// Failure to start listening.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another daemon of this user holds the lock file at this path.
    #[error("IronCurtain is already running for this user (it holds `{0}`)")]
    AlreadyRunning(PathBuf),
    /// The lock file cannot be opened or locked.
    #[error("failed to lock `{path}`: {source}")]
    Lock {
        /// Path of the lock file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The socket cannot be bound, or a stale one cannot be removed.
    #[error("failed to create the socket `{path}`: {source}")]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// Listening socket. Dropping it removes the socket file and releases the locks.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    socket_file: SocketFile,
    locks: Locks,
}

/// Path of the socket file. Dropping this value removes the file.
#[derive(Debug)]
struct SocketFile(PathBuf);

/// Locks that keep a second daemon from using the same state directory or socket.
#[derive(Debug)]
pub struct Locks {
    /// Locks on the state directory and on the socket.
    _both: [Lock; 2],
}

/// Exclusive `flock` held on an open file.
#[derive(Debug)]
struct Lock(File);

/// Process of this user that has sent its hello message.
#[derive(Debug)]
pub struct Peer {
    /// Hello message that the peer sent.
    pub hello: Hello,
    /// Process id of the peer, as reported by the kernel.
    pub pid: u32,
    /// Connection to the peer.
    pub stream: UnixStream,
    descriptors: Vec<OwnedFd>,
}

/// A client's standard input and output.
#[derive(Debug)]
pub struct ClientStdio {
    /// Stream that the client writes to.
    pub input: LineSource,
    /// Stream that the client reads from.
    pub output: LineSink,
}

impl Lock {
    /// Locks the file without waiting. Creates the file if it does not exist.
    fn acquire(path: PathBuf) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Lock { path: path.clone(), source };
        let file = bounded_read::open_own(&path).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ListenError::AlreadyRunning(path)),
            Err(e) => Err(failed(e.into())),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A forked child that has not called `exec` yet also holds the descriptor, so closing ours would not release
        // the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl Listener {
    /// Acquires both locks and binds the socket. The lock on `state` protects the grants and the audit log even if the
    /// environment selects a different socket path.
    ///
    /// # Errors
    /// Returns [`ListenError`] if another daemon is running or the socket cannot be bound.
    pub fn bind(path: &Path, state: &Path) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Io { path: path.to_path_buf(), source };
        let locks = [Lock::acquire(state.join("lock"))?, Lock::acquire(path.with_extension("lock"))?];
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        let socket = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { socket, socket_file: SocketFile(path.to_path_buf()), locks: Locks { _both: locks } })
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// Returns the operating system's error, such as too many open files.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.socket.accept().await?.0)
    }

    /// Stops listening. Returns the locks, which remain held until they are dropped.
    pub fn close(self) -> Locks {
        let Self { socket, socket_file, locks } = self;
        drop(socket_file);
        drop(socket);
        locks
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If this fails, the next start removes the stale socket.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Peer {
    /// Authenticates a peer and reads its hello message. Returns `None` if the peer was refused.
    pub async fn accept(stream: UnixStream) -> Option<Self> {
        Self::accept_with(stream, Some(Vec::new())).await
    }

    /// Like [`accept`](Self::accept), for a sandboxed peer. The kernel discards any descriptors sent with the
    /// message.
    pub async fn accept_sandboxed(stream: UnixStream) -> Option<Self> {
        Self::accept_with(stream, None).await
    }

    /// Reads a connection's hello message. Receives descriptors only if `descriptors` is `Some`.
    async fn accept_with(mut stream: UnixStream, descriptors: Option<Vec<OwnedFd>>) -> Option<Self> {
        let peer = stream.peer_cred().ok()?;
        let (pid, uid) = (peer.pid()?.unsigned_abs(), peer.uid());
        if uid != rustix::process::geteuid().as_raw() {
            let text = format!("this is the IronCurtain of another user; you are user {uid}");
            refuse(&mut stream, RefusalCode::OtherUser, text).await;
            return None;
        }
        let received = tokio::time::timeout(HELLO_TIMEOUT, read_hello(&stream, descriptors)).await;
        let (hello, descriptors) = match received {
            Ok(Ok(received)) => received,
            Ok(Err(problem)) => {
                refuse(&mut stream, RefusalCode::Malformed, format!("invalid hello message: {problem}"))
                    .await;
                return None;
            }
            Err(_) => return None,
        };
        if hello.version != VERSION {
            let text = format!(
                "versions differ: the running IronCurtain uses protocol version {VERSION}, this program version {}; restart IronCurtain",
                hello.version
            );
            refuse(&mut stream, RefusalCode::Version, text).await;
            return None;
        }
        Some(Self { hello, pid, stream, descriptors })
    }

    /// Sends the peer a welcome message. `session` is the id of its session, if it has one.
    ///
    /// # Errors
    /// Fails if the peer has disconnected.
    pub async fn welcome(&mut self, session: Option<String>) -> io::Result<()> {
        let welcome = Welcome::Accepted { version: VERSION, pid: std::process::id(), session };
        send(&mut self.stream, &welcome).await
    }

    /// Sends the peer a refusal with a machine-readable code and a message for the user.
    pub async fn refuse(&mut self, code: RefusalCode, message: String) {
        refuse(&mut self.stream, code, message).await;
    }

    /// Returns a run's descriptors, which the peer sent with its hello message.
    ///
    /// # Errors
    /// Fails unless there are exactly four descriptors, or five if `has_terminal` is `true`.
    pub fn take_run(&mut self, has_terminal: bool) -> io::Result<RunDescriptors> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "the standard streams are missing");
        let mut descriptors = std::mem::take(&mut self.descriptors);
        let questions = if has_terminal { descriptors.pop() } else { None };
        let [stdin, stdout, stderr, link] = descriptors.try_into().map_err(|_| missing())?;
        if questions.is_some() != has_terminal {
            return Err(missing());
        }
        Ok(RunDescriptors { streams: [stdin, stdout, stderr], link, questions })
    }

    /// Returns the socket that the peer sent with its hello message.
    ///
    /// # Errors
    /// Fails unless there is exactly one descriptor and it is a socket.
    pub fn take_link(&mut self) -> io::Result<UnixStream> {
        let descriptors = std::mem::take(&mut self.descriptors);
        let [link] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the socket is missing"))?;
        rustix::net::sockopt::socket_type(&link)?;
        let link = std::os::unix::net::UnixStream::from(link);
        link.set_nonblocking(true)?;
        UnixStream::from_std(link)
    }

    /// Returns the client's standard input and output, which the peer sent with its hello message.
    ///
    /// # Errors
    /// Fails unless there are exactly two descriptors and both are pipes or sockets.
    pub fn take_stdio(&mut self) -> io::Result<ClientStdio> {
        let mut descriptors = std::mem::take(&mut self.descriptors).into_iter();
        match (descriptors.next(), descriptors.next(), descriptors.next()) {
            (Some(input), Some(output), None) => {
                let (input, output) = (Input::new(input)?, Output::new(output)?);
                Ok(ClientStdio { input: LineSource::Stream(input), output: LineSink::Stream(output) })
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "standard input and output are missing")),
        }
    }
}

/// Descriptors from the process that started a run.
#[derive(Debug)]
pub struct RunDescriptors {
    /// Standard input, output and error.
    pub streams: [OwnedFd; 3],
    /// The run's end of the connection to the process that started the run.
    pub link: OwnedFd,
    /// Terminal on which the user answers questions, or `None` if questions are not asked on a terminal.
    pub questions: Option<OwnedFd>,
}

/// Note for a shim, with an optional sender that confirms that the note was written.
#[derive(Debug)]
pub struct OutgoingNote {
    /// Note to send.
    pub note: ShimNote,
    /// Notified once the note is written. Dropped if writing fails.
    pub written: Option<oneshot::Sender<()>>,
}

impl From<ShimNote> for OutgoingNote {
    fn from(note: ShimNote) -> Self {
        Self { note, written: None }
    }
}

/// Sends notes to a shim. Completes when the shim disconnects or has received the note that its session was handed
/// over.
pub async fn forward_notes(stream: UnixStream, mut notes: mpsc::UnboundedReceiver<OutgoingNote>) {
    let (mut from, mut to) = stream.into_split();
    let mut byte = [0; 64];
    loop {
        tokio::select! {
            read = from.read(&mut byte) => if !matches!(read, Ok(n) if n > 0) {
                return;
            },
            Some(OutgoingNote { note, written }) = notes.recv() => {
                let Ok(mut line) = serde_json::to_vec(&note) else { continue };
                line.push(b'\n');
                let is_last = matches!(note, ShimNote::Moved { .. });
                if to.write_all(&line).await.is_err() || is_last {
                    return;
                }
                if let Some(written) = written {
                    // Fails if the caller was cancelled.
                    let _ = written.send(());
                }
            }
        }
    }
}

/// Sends one protocol message as a line of JSON.
///
/// # Errors
/// Fails if the peer has disconnected or the message is too long.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    if line.len() > MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    line.push(b'\n');
    stream.write_all(&line).await
}

async fn refuse(stream: &mut UnixStream, code: RefusalCode, message: String) {
    // Ignore the error, which occurs only if the peer has disconnected.
    let _ = send(stream, &Welcome::Refused(HelloRefusal { code, message })).await;
}

/// Reads the first line byte by byte, because the bytes after it belong to a later reader. Receives descriptors only if
/// `descriptors` is `Some`.
async fn read_hello(
    stream: &UnixStream,
    mut descriptors: Option<Vec<OwnedFd>>,
) -> io::Result<(Hello, Vec<OwnedFd>)> {
    let mut line = Vec::new();
    loop {
        let byte = stream.async_io(Interest::READABLE, || receive(stream, descriptors.as_mut())).await?;
        match byte {
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(b'\n') => return Ok((serde_json::from_slice(&line)?, descriptors.unwrap_or_default())),
            Some(byte) if line.len() < MAX_HELLO_LEN => line.push(byte),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it exceeds 64 KiB")),
        }
    }
}

fn receive(stream: &UnixStream, mut descriptors: Option<&mut Vec<OwnedFd>>) -> io::Result<Option<u8>> {
    let mut byte = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
    let space = if descriptors.is_some() { &mut space[..] } else { &mut [] };
    let mut ancillary = RecvAncillaryBuffer::new(space);
    let result =
        rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RECEIVE_FLAGS)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message {
            descriptors.iter_mut().for_each(|descriptors| descriptors.extend(received.by_ref()));
        }
    }
    let [byte] = byte;
    Ok((result.bytes == 1).then_some(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncBufReadExt;

    #[tokio::test]
    async fn a_note_is_delivered_before_it_is_reported_as_written() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (send, notes) = mpsc::unbounded_channel();
        let (written, is_written) = oneshot::channel();
        let note = ShimNote::Settled { request: "1".into() };
        send.send(OutgoingNote { note, written: Some(written) }).unwrap();
        let attending = tokio::spawn(forward_notes(ours, notes));
        is_written.await.unwrap();
        // The shim has received the note, even if the sender is killed now.
        attending.abort();
        let mut line = String::new();
        tokio::io::BufReader::new(theirs).read_line(&mut line).await.unwrap();
        assert_eq!(line, "{\"settled\":{\"request\":\"1\"}}\n");
    }

    #[tokio::test]
    async fn one_daemon_holds_a_state_directory_on_any_socket() {
        let kept = tempfile::tempdir().unwrap();
        let [state, other] = ["state", "other"].map(|name| kept.path().join(name));
        std::fs::create_dir(&state).unwrap();
        std::fs::create_dir(&other).unwrap();
        let [here, there] = ["here", "there"].map(|name| kept.path().join(name).with_extension("socket"));
        let first = Listener::bind(&here, &state).unwrap();
        let refused = Listener::bind(&there, &state).unwrap_err();
        assert!(
            matches!(&refused, ListenError::AlreadyRunning(lock) if *lock == state.join("lock")),
            "{refused}"
        );
        let refused = Listener::bind(&here, &other).unwrap_err();
        assert!(matches!(refused, ListenError::AlreadyRunning(_)), "{refused}");
        assert!(std::os::unix::net::UnixStream::connect(&here).is_ok());
        // The failed attempt above created the file.
        std::fs::remove_file(other.join("lock")).unwrap();
        std::fs::create_dir(other.join("lock")).unwrap();
        let refused = Listener::bind(&there, &other).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("failed to lock `{}`: ", other.join("lock").display())),
            "{refused}"
        );
        drop(first);
        drop(Listener::bind(&there, &state).unwrap());
    }
}
