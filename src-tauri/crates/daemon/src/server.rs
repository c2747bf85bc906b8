//! One MCP server of a session: its process, its mounts, and the connection to it.
//!
//! - A session holds a [`ServerHandle`]. The process behind it may exit and be restarted; in-flight calls then fail, and none
//!   runs twice.
//! - One task (`actor`) owns the process and its mounts; one task per process (`connection`) owns the connection.

mod actor;
pub mod control;
mod down;
mod mounted;
pub mod process;
mod replay;
mod roots;
mod start_error;

pub use actor::{ActorOptions, Applied, Versions};
pub(crate) use control::LISTENING;
pub use control::SupervisorError;
pub use down::DownReason;
pub use process::Containment;
pub use replay::{InitializeCallback, ReplayState};
pub use roots::{ServerView, Suspension, still_there};
pub use start_error::{ContainmentError, ServerStartError};

use actor::{ActorView, Command, ServerState};
use ironcurtain_grants::mounts::Need;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::ServerConnection;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::ServerReach;
use replay::Replay;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Maximum time a call waits for its server to start.
const START_BOUND: Duration = Duration::from_secs(30);

/// Reason why a server cannot take a call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// The server failed to start, or exited.
    #[error("the server `{server}` is not running: {reason}")]
    Down {
        /// Server name.
        server: String,
        /// Cause.
        reason: DownReason,
    },
    /// The server takes too long to start.
    #[error("the server `{0}` did not start within {n} s", n = START_BOUND.as_secs())]
    Slow(String),
    /// A path could not be mounted.
    #[error("failed to mount `{path}` for the server: {reason}")]
    NotShown {
        /// The path.
        path: String,
        /// Cause.
        reason: String,
    },
    /// The session is closing.
    #[error("the session is ending")]
    Ending,
}

/// Handle to one server of one session. The server is killed when the last handle is dropped, even with calls in flight.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    name: String,
    commands: mpsc::UnboundedSender<Command>,
    seen: ActorView,
    replay: Replay,
    _actor: Arc<AbortOnDrop>,
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Mounts for one in-flight call, removed on drop.
#[derive(Debug)]
pub struct MountLease {
    id: u64,
    needs: Vec<Need>,
    commands: mpsc::UnboundedSender<Command>,
}

impl MountLease {
    /// Returns the mounted paths.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }
}

impl Drop for MountLease {
    fn drop(&mut self) {
        // If the actor has exited, nothing is mounted.
        let _ = self.commands.send(Command::Release(self.id));
    }
}

impl ServerHandle {
    /// Starts the actor, which starts the process at once and replays the client's messages to an earlier process.
    #[must_use]
    pub fn start(options: ActorOptions, state: ReplayState) -> Self {
        let name = options.server.name.clone();
        let (commands, inbox) = mpsc::unbounded_channel();
        let replay = Replay::from(state);
        let (seen, task) = actor::start(options, replay.clone(), commands.downgrade(), inbox);
        Self { name, commands, seen, replay, _actor: Arc::new(AbortOnDrop(task)) }
    }

    /// Sends the client's `initialize` to the server, and to every process that replaces it. `then` gets the response before
    /// the server's later messages are forwarded.
    pub fn initialize(&self, params: Box<RawValue>, then: InitializeCallback) {
        self.replay.initialize(params, then);
        if self.commands.send(Command::Initialize).is_err() {
            self.replay.give_up(&DownReason::Ended(Arc::default()));
        }
    }

    /// Forwards the client's `notifications/initialized`, given as a line.
    pub fn initialized(&self, line: Vec<u8>) {
        self.replay.initialized(line, || self.connection_now());
        // If the actor has exited, no one needs the notification.
        let _ = self.commands.send(Command::Initialized);
    }

    /// Returns the client state to replay to every later process.
    #[must_use]
    pub fn replay_state(&self) -> ReplayState {
        self.replay.state()
    }

    /// Remembers a client request that must be replayed to later processes, if it is one.
    pub fn keep(&self, request: &ServerRequest) {
        self.replay.keep(request);
    }

    /// Returns `true` if the client is subscribed to this resource.
    #[must_use]
    pub fn follows(&self, uri: &str) -> bool {
        self.replay.follows(uri)
    }

    /// Returns the connection once the process runs, restarting it if it exited.
    ///
    /// # Errors
    /// Returns [`ServerError`] if the server is not running and cannot be started.
    pub async fn connection(&self) -> Result<ServerConnection, ServerError> {
        self.when(|state| matches!(state, ServerState::Up { connection, .. } if !connection.is_over())).await
    }

    /// Returns the connection once the server knows its roots.
    ///
    /// # Errors
    /// Same as [`ServerHandle::connection`].
    pub async fn ready(&self) -> Result<ServerConnection, ServerError> {
        self.when(
            |state| matches!(state, ServerState::Up { connection, ready: true, .. } if !connection.is_over()),
        )
        .await
    }

    /// Returns the connection, if there is one now.
    #[must_use]
    pub fn connection_now(&self) -> Option<ServerConnection> {
        match &*self.seen.state.borrow() {
            ServerState::Up { connection, .. } if !connection.is_over() => Some(connection.clone()),
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// Returns the connection, if the server can take a call now.
    #[must_use]
    pub fn ready_now(&self) -> Option<ServerConnection> {
        match &*self.seen.state.borrow() {
            ServerState::Up { connection, ready: true, .. } if !connection.is_over() => {
                Some(connection.clone())
            }
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// Mounts what a call needs, and waits until it is mounted. `named` are the autostart files that the user approved for this
    /// call.
    ///
    /// # Errors
    /// Returns [`ServerError::NotShown`] if a path cannot be mounted; the call must not be forwarded.
    pub async fn lease(
        &self,
        needs: Vec<Need>,
        named: Vec<CanonicalPath>,
    ) -> Result<MountLease, ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Lease(needs, named, reply)).map_err(|_| ServerError::Ending)?;
        answer.await.map_err(|_| ServerError::Ending)?
    }

    /// Waits until the mounts match the current files, but not until the server has noticed.
    ///
    /// # Errors
    /// Returns [`ServerError::Ending`] if the session closes in the meantime.
    pub async fn refresh(&self) -> Result<(), ServerError> {
        let (reply, done) = oneshot::channel();
        self.commands.send(Command::Refresh(reply)).map_err(|_| ServerError::Ending)?;
        done.await.map_err(|_| ServerError::Ending)
    }

    /// Waits until the mounts reflect at least these versions of the grants and the policy.
    ///
    /// # Errors
    /// Returns [`ServerError::Ending`] if the session closes in the meantime.
    pub async fn caught_up(&self, versions: Versions) -> Result<Applied, ServerError> {
        let mut applied = self.seen.applied.clone();
        let reached = applied.wait_for(|a| a.versions.have_reached(versions)).await;
        reached.map(|a| a.clone()).map_err(|_| ServerError::Ending)
    }

    /// Returns the current or pending reach of a server that was started with access to these folders only.
    #[must_use]
    pub fn reach_beyond(&self, own: &[CanonicalPath]) -> ServerReach {
        match self.all_mounts(|need| own.iter().any(|own| own.contains(&need.path))) {
            None => ServerReach::Unknown,
            Some(true) => ServerReach::Nothing,
            Some(false) => ServerReach::Something,
        }
    }

    /// Returns whether no other folder than these is mounted for writing, or about to be.
    #[must_use]
    pub fn writes_only_to(&self, own: &[CanonicalPath]) -> bool {
        let is_own = |need: &Need| own.iter().any(|own| own.contains(&need.path));
        self.all_mounts(|need| !need.writable || is_own(need)) == Some(true)
    }

    /// Returns whether all current and pending mounts are as `wanted`. `None` if they are unknown.
    fn all_mounts(&self, wanted: impl Fn(&Need) -> bool) -> Option<bool> {
        let about_to_be = {
            let shown = self.seen.roots.borrow();
            // The first root is present once the mounts have been computed for the first time.
            if shown.roots.is_empty() {
                return None;
            }
            shown.needs.iter().all(&wanted)
        };
        Some(about_to_be && self.seen.applied.borrow().mounted().all(&wanted))
    }

    /// Waits until everything revoked by this version of the grants is proven to be unmounted. Returns the number of restarts
    /// that were needed for the proof.
    ///
    /// # Errors
    /// Returns [`ServerError::Ending`] if the session closes in the meantime.
    pub async fn is_within(&self, grants: u64) -> Result<u64, ServerError> {
        let mut applied = self.seen.applied.clone();
        let within = applied.wait_for(|applied| applied.within >= grants).await;
        within.map(|applied| applied.restarts).map_err(|_| ServerError::Ending)
    }

    /// Returns the grants and the policy applied so far.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.seen.applied.borrow().clone()
    }

    /// Returns the mounts and roots of the server.
    #[must_use]
    pub fn shown(&self) -> ServerView {
        self.seen.roots.borrow().clone()
    }

    /// Returns why the server is not running, or `None` if it is.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &*self.seen.state.borrow() {
            ServerState::Down(reason) => Some(reason.to_string()),
            ServerState::Up { .. } | ServerState::Starting(_) => None,
        }
    }

    /// Returns the number of restarts.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.seen.starts.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Returns the process id of the supervisor, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.seen.state.borrow() {
            ServerState::Up { pid, .. } => *pid,
            ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    async fn when(&self, ready: impl Fn(&ServerState) -> bool) -> Result<ServerConnection, ServerError> {
        let mut state = self.seen.state.clone();
        let is_down = |s: &ServerState| matches!(s, ServerState::Down(_));
        let ended = |s: &ServerState| matches!(s, ServerState::Up { connection, .. } if connection.is_over());
        // A process that has just exited is reported as down within a moment.
        let ended_just_now = ended(&state.borrow());
        if ended_just_now {
            state.wait_for(|s| !ended(s)).await.map_err(|_| ServerError::Ending)?;
        }
        if is_down(&state.borrow_and_update()) {
            self.restart(&mut state).await?;
        }
        let answer = |state: &ServerState| match state {
            ServerState::Up { connection, .. } if ready(state) => Some(Ok(connection.clone())),
            ServerState::Down(reason) => Some(Err(self.down(reason.clone()))),
            ServerState::Up { .. } | ServerState::Starting(_) => None,
        };
        let answered = async {
            loop {
                if let Some(answer) = answer(&state.borrow_and_update()) {
                    return answer;
                }
                state.changed().await.map_err(|_| ServerError::Ending)?;
            }
        };
        let slow = |_| Err(ServerError::Slow(self.name.clone()));
        tokio::time::timeout(START_BOUND, answered).await.unwrap_or_else(slow)
    }

    /// Restarts the process at the user's request; the session stays open.
    ///
    /// # Errors
    /// Returns [`ServerError`] if the server does not start again.
    pub async fn start_again(&self) -> Result<(), ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Restart(reply)).map_err(|_| ServerError::Ending)?;
        answer.await.map_err(|_| ServerError::Ending)?.map_err(|reason| self.down(reason))
    }

    async fn restart(&self, state: &mut watch::Receiver<ServerState>) -> Result<(), ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Start(reply)).map_err(|_| ServerError::Ending)?;
        let started = answer.await.map_err(|_| ServerError::Ending)?;
        state.mark_changed();
        started.map_err(|reason| self.down(reason))
    }

    /// Returns the error for a server that is down.
    #[must_use]
    pub fn down(&self, reason: DownReason) -> ServerError {
        ServerError::Down { server: self.name.clone(), reason }
    }
}
