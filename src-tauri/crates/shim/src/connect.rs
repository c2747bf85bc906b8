//! Finding the daemon, starting it when none runs, and greeting it.

use ironcurtain_paths::OwnProgram;
use ironcurtain_protocol::{Hello, Sockets, StdioMode};
use rustix::fs::OFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, BufRead, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// The time that a daemon that was just started may take before it listens.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// The time that another daemon, that won the race to start, may take before it listens once ours has given up.
const RACE_DEADLINE: Duration = Duration::from_secs(1);

/// First pause between two attempts to connect; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A connection to this user's daemon. The error is a sentence for a person.
pub fn to_daemon() -> Result<UnixStream, String> {
    let sockets = Sockets::of_user().map_err(|e| e.to_string())?;
    let stream = match sockets.connect().map_err(|e| e.to_string())? {
        Some(stream) => stream,
        None => start_and_connect(&sockets)?,
    };
    same_user(&stream)?;
    Ok(stream)
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
    let sent = rustix::net::sendmsg(stream, &[IoSlice::new(&line)], &mut ancillary, SendFlags::NOSIGNAL)?;
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

fn start_and_connect(sockets: &Sockets) -> Result<UnixStream, String> {
    if rustix::process::geteuid().is_root() {
        // Whether to run as root is for a person to say, not for whatever started this.
        return Err(
            "IronCurtain is not running, and it does not start by itself as root; start `ironcurtain daemon \
            --allow-root` first, or run the agent as an ordinary user"
                .to_owned(),
        );
    }
    let program = daemon_program()?;
    let mut child = start(&program).map_err(|e| {
        format!("IronCurtain is not running and `{}` could not be started: {e}", program.display())
    })?;
    let mut deadline = Instant::now() + START_DEADLINE;
    let mut ended = false;
    let mut pause = FIRST_PAUSE;
    loop {
        match sockets.connect().map_err(|e| e.to_string())? {
            Some(stream) => return Ok(stream),
            None if Instant::now() >= deadline => return Err(never_listened(&program, &mut child)),
            // It may also have ended because another one won the race to start; that one will listen.
            None => std::thread::sleep(pause),
        }
        if !ended && matches!(child.try_wait(), Ok(Some(_))) {
            ended = true;
            deadline = deadline.min(Instant::now() + RACE_DEADLINE);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn never_listened(program: &Path, child: &mut Child) -> String {
    let how = match child.try_wait() {
        Ok(Some(status)) => format!("ended with {status}"),
        Ok(None) | Err(_) => format!("did not listen within {} s", START_DEADLINE.as_secs()),
    };
    format!(
        "IronCurtain was not running; `{}` was started and {how}. Start IronCurtain yourself to see why",
        program.display()
    )
}

/// The program to start: the tray app where there is a display, else the headless daemon, which denies what
/// it cannot ask.
fn daemon_program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("the shim's own path is unknown: {e}"))?;
    let beside = |name: &str| own.parent().map(|d| d.join(name)).filter(|p| p.is_file());
    let display =
        ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|v| std::env::var_os(v).is_some_and(|v| !v.is_empty()));
    let app = if display { beside("ironcurtain-desktop") } else { None };
    app.or_else(|| beside("ironcurtain")).ok_or_else(|| {
        format!(
            "IronCurtain is not running and its programs are not beside `{}`; install it again",
            own.display()
        )
    })
}

/// Starts it with nothing of ours: no descriptor of the conversation, and not in the client's process group,
/// so that it outlives the client.
fn start(program: &Path) -> io::Result<Child> {
    let opened = OwnProgram::open(program)?;
    let mut command = opened.command();
    if program.ends_with("ironcurtain-desktop") {
        command.arg("--background");
    } else {
        command.args(["daemon", "--ask", "deny", "--detach"]);
    }
    command
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .process_group(0)
        .spawn()
}

/// Whoever listens must be this user: the conversation is theirs.
fn same_user(stream: &UnixStream) -> Result<(), String> {
    let peer = rustix::net::sockopt::socket_peercred(stream)
        .map_err(|e| format!("the kernel does not say who listens on IronCurtain's socket: {e}"))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(format!("user {} listens on IronCurtain's socket, not you; nothing was sent", peer.uid.as_raw()))
}

/// Returns `true` if a descriptor can be given to the daemon: a pipe or a socket. Non-blocking mode, which the daemon
/// needs, would leak to the other users of a terminal or a file.
pub fn can_be_handed_over(descriptor: impl AsFd) -> bool {
    use rustix::fs::{FileType, fcntl_getfl, fstat};
    let Ok(stat) = fstat(&descriptor) else { return false };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let opened = fcntl_getfl(&descriptor).is_ok_and(|flags| !flags.contains(OFlags::PATH));
    opened && matches!(kind, FileType::Fifo | FileType::Socket)
}
