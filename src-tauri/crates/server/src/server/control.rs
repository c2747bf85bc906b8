//! Control connection to the supervisor of a server's sandbox.
//!
//! - INVARIANT: the sandbox is watched for as long as processes run in it. The final check starts only after the
//!   supervisor has exited, even if the connection was dropped earlier. Dropping the connection terminates the sandbox.

use ironcurtain_autostart::SandboxWatch;
use ironcurtain_sandbox::{
    ControlAnswer, ControlOp, ControlRequest, FromSupervisor, MountRefusal, SandboxEvent, UnmountProof,
};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// Maximum time to wait for an answer. The supervisor never waits for other processes, so a late answer means that the
/// supervisor has hung.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for a supervisor to clean up its sandbox.
pub(super) const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which a supervisor that was asked to exit has either exited or been killed.
pub const EXIT_TIMEOUT: Duration = CLEANUP_TIMEOUT.saturating_add(Duration::from_secs(5));

/// Error on the connection to a supervisor.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The supervisor could not create the sandbox. Contains its reason.
    #[error("{0}")]
    Failed(String),
    /// The server exited before the sandbox was ready. Contains the exit status.
    #[error("exit status {0}")]
    Exited(i32),
    /// The supervisor did not answer in time.
    #[error("the sandbox supervisor did not answer within {n} s", n = ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The supervisor exited before it answered.
    #[error("the sandbox supervisor exited")]
    Disconnected,
    /// The supervisor sent a message that cannot be parsed.
    #[error("invalid message from the sandbox supervisor: {0}")]
    InvalidMessage(serde_json::Error),
    /// Reading from or writing to the connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Control connection. Handles one request at a time, and queues events that arrive before the answer.
#[derive(Debug)]
pub struct SupervisorControl {
    lines: Lines,
    write: tokio::net::unix::OwnedWriteHalf,
    next: u64,
    events: VecDeque<SandboxEvent>,
    watch: Option<SandboxWatch>,
    /// Masks that were lost and have not been reported to the user.
    lost_masks: Vec<LostMask>,
    /// Reason the sandbox has no TUN device, if it should have one.
    tun_error: Option<String>,
}

/// Path in a sandbox whose mask was temporarily missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostMask {
    /// Absolute path.
    pub(crate) path: String,
    /// `true` if the mask hides the path, `false` if it makes the path read-only.
    pub(crate) hidden: bool,
}

/// Receiving half of the connection, or `None` once the supervisor has exited.
#[derive(Debug)]
struct Lines(Option<BufReader<OwnedReadHalf>>);

impl SupervisorControl {
    /// Creates a connection without a watch for autostart files.
    ///
    /// # Errors
    /// Returns the operating system's error if the stream cannot be used.
    pub fn without_watch(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Self::new(stream, None)
    }

    /// Creates a connection to a supervisor. `watch` watches the supervisor's sandbox for autostart files.
    ///
    /// # Errors
    /// Returns the operating system's error if the stream cannot be used.
    pub fn new(stream: std::os::unix::net::UnixStream, watch: Option<SandboxWatch>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        Ok(Self {
            lines: Lines(Some(BufReader::new(read))),
            write,
            next: 0,
            events: VecDeque::new(),
            watch,
            lost_masks: Vec::new(),
            tun_error: None,
        })
    }

    /// Waits until the sandbox is ready.
    ///
    /// # Errors
    /// Returns [`SupervisorError`] if the sandbox cannot be created.
    pub async fn started(&mut self) -> Result<(), SupervisorError> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.lines.next().await? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                SandboxEvent::Started => return Ok(()),
                SandboxEvent::Failed { reason } => return Err(SupervisorError::Failed(reason)),
                SandboxEvent::Exited { status } => return Err(SupervisorError::Exited(status)),
                SandboxEvent::Uncovered { path, hidden } => self.lost_masks.push(LostMask { path, hidden }),
                SandboxEvent::TunUnavailable { reason } => self.tun_error = Some(reason),
                SandboxEvent::Limited { .. } => {}
            }
        }
    }

    /// Returns the reason programs that ignore the proxy have no network, if the sandbox should have a TUN device but
    /// has none. Known once the sandbox has started.
    pub fn tun_error(&self) -> Option<&str> {
        self.tun_error.as_deref()
    }

    /// Sends a request and waits for its answer. Do not use the connection after an error.
    ///
    /// # Errors
    /// Returns [`SupervisorError`] if the supervisor exits or does not answer in time.
    pub async fn ask(&mut self, op: ControlOp) -> Result<ControlAnswer, SupervisorError> {
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(op)).await;
        answer.unwrap_or(Err(SupervisorError::TimedOut))
    }

    async fn exchange(&mut self, op: ControlOp) -> Result<ControlAnswer, SupervisorError> {
        self.next += 1;
        let id = self.next;
        let mut line = serde_json::to_vec(&ControlRequest { id, op }).map_err(io::Error::from)?;
        line.push(b'\n');
        self.write.write_all(&line).await?;
        loop {
            match self.lines.next().await? {
                FromSupervisor::Reply(reply) if reply.id == id => return Ok(reply.answer),
                FromSupervisor::Reply(_) => {}
                FromSupervisor::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// Carries out a request for a sandbox whose files are served. A folder is watched for autostart files while it is
    /// writable.
    pub async fn execute(&mut self, order: ControlOp) -> Option<ControlAnswer> {
        let (path, order) = match order {
            ControlOp::Add(mount) => {
                let path = mount.path.clone();
                let opened = match self.watch() {
                    Some(watch) => watch.open(&path).await,
                    None => Ok(vec![]),
                };
                match opened {
                    Ok(closed) => (Some(path), ControlOp::Add(mount.with_read_only(closed))),
                    // A folder that cannot be watched is not made writable.
                    Err(problem) => {
                        let (code, message) = (MountRefusal::Special, problem.to_string());
                        return Some(ControlAnswer::Refused { code, message });
                    }
                }
            }
            ControlOp::Remove { path } => (Some(path.clone()), ControlOp::Remove { path }),
            other @ (ControlOp::Narrow { .. } | ControlOp::List | ControlOp::Check | ControlOp::Shutdown) => {
                (None, other)
            }
        };
        let answer = self.ask(order).await.ok();
        let is_closed = matches!(
            answer,
            Some(ControlAnswer::Refused { .. } | ControlAnswer::Removed { proof: UnmountProof::Proved })
        );
        if let (true, Some(path), Some(watch)) = (is_closed, path, self.watch()) {
            watch.close(&path);
        }
        answer
    }

    /// Waits until the server has exited, and returns its exit status, or `None` if the supervisor failed to report
    /// one.
    pub async fn exit(&mut self) -> Option<i32> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.lines.next().await.ok()? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                SandboxEvent::Exited { status } => {
                    // This is the last event: the sandbox has no more processes.
                    self.lines.0 = None;
                    self.watch = None;
                    return Some(status);
                }
                SandboxEvent::Uncovered { path, hidden } => self.lost_masks.push(LostMask { path, hidden }),
                SandboxEvent::TunUnavailable { .. }
                | SandboxEvent::Started
                | SandboxEvent::Failed { .. }
                | SandboxEvent::Limited { .. } => {}
            }
        }
    }

    /// Returns the sandbox's watch, or `None` if the sandbox is not watched.
    pub fn watch(&self) -> Option<&SandboxWatch> {
        self.watch.as_ref()
    }

    /// Returns the masks that were lost since the last call, according to the events received so far.
    pub(crate) fn lost_masks(&mut self) -> Vec<LostMask> {
        let (lost, rest): (Vec<_>, Vec<_>) =
            self.events.drain(..).partition(|event| matches!(event, SandboxEvent::Uncovered { .. }));
        self.events = rest.into();
        let lost = lost.into_iter().filter_map(|event| match event {
            SandboxEvent::Uncovered { path, hidden } => Some(LostMask { path, hidden }),
            SandboxEvent::TunUnavailable { .. }
            | SandboxEvent::Started
            | SandboxEvent::Failed { .. }
            | SandboxEvent::Limited { .. }
            | SandboxEvent::Exited { .. } => None,
        });
        std::mem::take(&mut self.lost_masks).into_iter().chain(lost).collect()
    }
}

impl Drop for SupervisorControl {
    fn drop(&mut self) {
        let (Some(mut watch), Some(lines)) = (self.watch.take(), self.lines.0.take()) else { return };
        watch.begin_final_check();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // Dropping the write half closes the connection, which terminates the sandbox.
        runtime.spawn(final_check(Lines(Some(lines)), watch));
    }
}

/// Waits until the supervisor has exited, then drops the watch, which starts the final check.
async fn final_check(mut lines: Lines, watch: SandboxWatch) {
    let ended = async { while lines.next().await.is_ok() {} };
    // After the time limit, the supervisor is killed.
    let _ = tokio::time::timeout(EXIT_TIMEOUT, ended).await;
    drop(watch);
}

impl Lines {
    async fn next(&mut self) -> Result<FromSupervisor, SupervisorError> {
        let lines = self.0.as_mut().ok_or(SupervisorError::Disconnected)?;
        let mut line = String::new();
        match lines.read_line(&mut line).await? {
            0 => Err(SupervisorError::Disconnected),
            _ => serde_json::from_str(&line).map_err(SupervisorError::InvalidMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::Audit;
    use ironcurtain_autostart::{Autostart, AutostartParts, WatchedServer};
    use ironcurtain_config::home::Home;
    use ironcurtain_sandbox::autostart::AutostartRules;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Stream;
    use tokio_util::task::TaskTracker;

    fn send(supervisor: &mut Stream, event: &SandboxEvent) {
        let mut line = serde_json::to_vec(event).unwrap();
        line.push(b'\n');
        supervisor.write_all(&line).unwrap();
    }

    #[tokio::test]
    async fn the_final_check_starts_after_the_supervisor_exits() {
        for is_given_up in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let sandboxes = TaskTracker::new();
            let home = Home::under(&dir.path().join("ic"), dir.path());
            home.prepare().unwrap();
            let audit = Audit::open(&home.audit(), |_| ()).unwrap();
            let changes = tokio::sync::watch::Sender::new(0);
            let parts = AutostartParts { home: &home, audit, changes, sandboxes: &sandboxes };
            let watched = WatchedServer { session: "a", server: "s", earlier_processes: 0 };
            let watch = Autostart::start(parts).watch(watched, AutostartRules::default()).await.unwrap();
            let (ours, mut supervisor) = Stream::pair().unwrap();
            let mut control = Some(SupervisorControl::new(ours, Some(watch)).unwrap());
            if is_given_up {
                control = None;
                // The supervisor receives end of file.
                assert_eq!(supervisor.read(&mut [0]).unwrap(), 0);
            }
            sandboxes.close();
            let done = tokio::spawn(async move { sandboxes.wait().await });
            send(&mut supervisor, &SandboxEvent::Uncovered { path: "/p/.envrc".into(), hidden: false });
            tokio::task::yield_now().await;
            assert!(!done.is_finished());
            send(&mut supervisor, &SandboxEvent::Exited { status: 3 });
            if let Some(control) = &mut control {
                assert_eq!(control.exit().await, Some(3));
                let lost = LostMask { path: "/p/.envrc".into(), hidden: false };
                assert_eq!((control.lost_masks(), control.lost_masks()), (vec![lost], vec![]));
            }
            drop(supervisor);
            tokio::time::timeout(Duration::from_secs(10), done).await.unwrap().unwrap();
        }
    }
}
