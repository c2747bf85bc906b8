//! The socket: who may come in, and what they want.
//!
//! - One daemon per user: whoever holds the lock of the state and that of the socket listens.
//! - A peer of another user is refused before anything it says is read.

use ironcurtain_mcp::wire::{Inlet, Input, Outlet, Output};
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

/// The time that a peer may take to say hello.
const HELLO_BOUND: Duration = Duration::from_secs(10);

/// Descriptors are received for this program alone. Elsewhere no program is started that could be given one.
#[cfg(target_os = "linux")]
const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
#[cfg(not(target_os = "linux"))]
const RECEIVE: RecvFlags = RecvFlags::DONTWAIT;

/// The longest hello.
const LONGEST_HELLO: usize = 64 * 1024;

/// Why nobody can be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another daemon of this user holds the lock.
    #[error("IronCurtain is already running for this user (it holds `{0}`)")]
    AlreadyRunning(PathBuf),
    /// A lock file cannot be used.
    #[error("failed to lock `{path}`: {source}")]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("the socket `{path}` cannot be made: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// The listening socket. Dropped, it is removed.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    place: Place,
    locks: Locks,
}

/// The path of the socket, which is removed on drop.
#[derive(Debug)]
struct Place(PathBuf);

/// The locks that keep another daemon from the state and the socket.
#[derive(Debug)]
pub struct Locks {
    /// Kept for its drop.
    _both: [Lock; 2],
}

/// A lock on a file, which one daemon at a time can hold.
#[derive(Debug)]
struct Lock(File);

/// A peer of this user that has said hello.
#[derive(Debug)]
pub struct Peer {
    /// Its hello.
    pub hello: Hello,
    /// Its process id, by the kernel's word.
    pub pid: u32,
    /// The connection.
    pub stream: UnixStream,
    descriptors: Vec<OwnedFd>,
}

/// The streams of a client.
#[derive(Debug)]
pub struct ClientStdio {
    /// From the client.
    pub input: Inlet,
    /// To the client.
    pub output: Outlet,
}

impl Lock {
    /// Takes it, or says that another daemon has it.
    fn take(path: PathBuf) -> Result<Self, ListenError> {
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
        // Closing alone would leave the lock to a child that was just forked and has not run its program yet.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl Listener {
    /// Takes the locks, of the state and of the socket, and the socket. Where the socket is, an environment may decide;
    /// the grants and the record are those of the state.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind(path: &Path, state: &Path) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Io { path: path.to_path_buf(), source };
        let locks = [Lock::take(state.join("lock"))?, Lock::take(path.with_extension("lock"))?];
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        let socket = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { socket, place: Place(path.to_path_buf()), locks: Locks { _both: locks } })
    }

    /// The next connection.
    ///
    /// # Errors
    /// The operating system's error, such as too many open files.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.socket.accept().await?.0)
    }

    /// Listens no more; the state stays this daemon's.
    pub fn close(self) -> Locks {
        let Self { socket, place, locks } = self;
        drop(place);
        drop(socket);
        locks
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Left behind it only costs the next start a removal.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Peer {
    /// Takes the hello of a connection; a refusal has been sent when there is none.
    pub async fn meet(mut stream: UnixStream) -> Option<Self> {
        let peer = stream.peer_cred().ok()?;
        let (pid, uid) = (peer.pid()?.unsigned_abs(), peer.uid());
        if uid != rustix::process::geteuid().as_raw() {
            let text = format!("this is the IronCurtain of another user; you are user {uid}");
            refuse(&mut stream, RefusalCode::OtherUser, text).await;
            return None;
        }
        let met = tokio::time::timeout(HELLO_BOUND, read_hello(&stream)).await;
        let (hello, descriptors) = match met {
            Ok(Ok(met)) => met,
            Ok(Err(problem)) => {
                refuse(
                    &mut stream,
                    RefusalCode::Malformed,
                    format!("the greeting was not understood: {problem}"),
                )
                .await;
                return None;
            }
            Err(_) => return None,
        };
        if hello.version != VERSION {
            let text = format!(
                "versions differ: the running IronCurtain speaks version {VERSION}, this program version {}; quit IronCurtain and start it again",
                hello.version
            );
            refuse(&mut stream, RefusalCode::Version, text).await;
            return None;
        }
        Some(Self { hello, pid, stream, descriptors })
    }

    /// Says welcome.
    ///
    /// # Errors
    /// When the peer is gone.
    pub async fn welcome(&mut self, session: Option<String>) -> io::Result<()> {
        let welcome = Welcome::Accepted { version: VERSION, pid: std::process::id(), session };
        send(&mut self.stream, &welcome).await
    }

    /// Says no.
    pub async fn refuse(&mut self, code: RefusalCode, message: String) {
        refuse(&mut self.stream, code, message).await;
    }

    /// The client's own standard input and output, when the hello brought them.
    ///
    /// # Errors
    /// When there are not exactly two, or they are neither pipes nor sockets.
    pub fn take_stdio(&mut self) -> io::Result<ClientStdio> {
        let mut given = std::mem::take(&mut self.descriptors).into_iter();
        match (given.next(), given.next(), given.next()) {
            (Some(input), Some(output), None) => {
                let (input, output) = (Input::new(input)?, Output::new(output)?);
                Ok(ClientStdio { input: Inlet::Stream(input), output: Outlet::Stream(output) })
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "standard input and output did not come along",
            )),
        }
    }
}

/// A note for a shim, and the caller that waits until it is written.
#[derive(Debug)]
pub struct OutgoingNote {
    /// The note.
    pub note: ShimNote,
    /// Notified once the note is written; dropped where it never will be.
    pub written: Option<oneshot::Sender<()>>,
}

impl From<ShimNote> for OutgoingNote {
    fn from(note: ShimNote) -> Self {
        Self { note, written: None }
    }
}

/// Passes notes to a shim that waits; completes when it hangs up, or knows that its session is moved.
pub async fn attend(stream: UnixStream, mut notes: mpsc::UnboundedReceiver<OutgoingNote>) {
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
                    // Who no longer waits was cancelled.
                    let _ = written.send(());
                }
            }
        }
    }
}

/// Sends one message of the protocol.
///
/// # Errors
/// When the peer is gone, or the message is too long.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    if line.len() > MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"));
    }
    line.push(b'\n');
    stream.write_all(&line).await
}

async fn refuse(stream: &mut UnixStream, code: RefusalCode, message: String) {
    // A peer that is gone need not be told.
    let _ = send(stream, &Welcome::Refused(HelloRefusal { code, message })).await;
}

/// Reads the first line byte by byte, since what follows it belongs to others, and takes the descriptors with it.
async fn read_hello(stream: &UnixStream) -> io::Result<(Hello, Vec<OwnedFd>)> {
    let mut line = Vec::new();
    let mut descriptors = Vec::new();
    loop {
        let byte = stream.async_io(Interest::READABLE, || receive(stream, &mut descriptors)).await?;
        match byte {
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(b'\n') => return Ok((serde_json::from_slice(&line)?, descriptors)),
            Some(byte) if line.len() < LONGEST_HELLO => line.push(byte),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long")),
        }
    }
}

fn receive(stream: &UnixStream, descriptors: &mut Vec<OwnedFd>) -> io::Result<Option<u8>> {
    let mut byte = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RECEIVE)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            descriptors.extend(given);
        }
    }
    let [byte] = byte;
    Ok((got.bytes == 1).then_some(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncBufReadExt;

    #[tokio::test]
    async fn a_note_is_with_the_shim_when_it_is_said_to_be_written() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (send, notes) = mpsc::unbounded_channel();
        let (written, is_written) = oneshot::channel();
        let note = ShimNote::Settled { request: "1".into() };
        send.send(OutgoingNote { note, written: Some(written) }).unwrap();
        let attending = tokio::spawn(attend(ours, notes));
        is_written.await.unwrap();
        // Killed now, the shim has the note all the same.
        attending.abort();
        let mut line = String::new();
        tokio::io::BufReader::new(theirs).read_line(&mut line).await.unwrap();
        assert_eq!(line, "{\"settled\":{\"request\":\"1\"}}\n");
    }

    #[tokio::test]
    async fn one_daemon_has_a_state_wherever_it_listens() {
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
        // The try above has made it.
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
