//! A session's MCP server: its process, its mounts and the connection to it.
//!
//! - A session holds a [`ServerHandle`]. If the process exits, its in-flight calls fail and are never retried
//!   automatically. The process can be restarted.
//! - One task (`actor`) owns the process and its mounts, and one task per process (`connection`) owns the connection.

mod actor;
pub mod control;
mod down;
mod mounted;
pub mod process;
mod replay;
mod roots;
mod start_error;

pub use actor::AskingOptions;
pub use actor::{ActorOptions, Applied, Versions};
pub use control::EXIT_TIMEOUT;
pub use control::SupervisorError;
pub use down::DownReason;
pub use process::Containment;
pub use replay::{InitializeCallback, ReplayState};
pub use roots::{InactiveReason, ServerView, always_accessible, check_unchanged, entry_paths};
pub use start_error::{ContainmentError, ServerStartError};

use actor::{ActorView, Command, ServerState};
use ironcurtain_grants::mounts::MountRequest;
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

/// Maximum time that a call waits for its server to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time for a server to exit after its input was closed, as in the MCP SDKs. It is then killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason a server cannot handle a call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// The server could not be started, or has exited.
    #[error("the server `{server}` is not running: {reason}")]
    Down {
        /// Name of the server.
        server: String,
        /// Reason why it is not running.
        reason: DownReason,
    },
    /// The server did not start in time.
    #[error("the server `{0}` did not start within {n} s", n = START_TIMEOUT.as_secs())]
    StartTimedOut(String),
    /// A path that the call needs could not be mounted.
    #[error("failed to mount `{path}` for the server: {reason}")]
    NotMounted {
        /// Path that could not be mounted.
        path: String,
        /// Error from mounting the path.
        reason: String,
    },
    /// The session is closing.
    #[error("the session is closing")]
    SessionClosing,
}

/// Handle to a session's server. Dropping the last clone kills the server and fails its in-flight calls.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    name: String,
    commands: mpsc::UnboundedSender<Command>,
    view: ActorView,
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

/// Mounts for one in-flight call. Dropping the lease removes them.
#[derive(Debug)]
pub struct MountLease {
    id: u64,
    mounts: Vec<MountRequest>,
    commands: mpsc::UnboundedSender<Command>,
}

impl MountLease {
    /// Returns the paths that the call needs.
    #[must_use]
    pub fn mounts(&self) -> &[MountRequest] {
        &self.mounts
    }
}

impl Drop for MountLease {
    fn drop(&mut self) {
        // Ignore the error: if the actor has exited, nothing is mounted.
        let _ = self.commands.send(Command::Release(self.id));
    }
}

impl ServerHandle {
    /// Starts the actor, which starts the process. To continue a session, `state` contains the client messages to
    /// replay.
    #[must_use]
    pub fn start(options: ActorOptions, state: ReplayState) -> Self {
        let name = options.server.name.clone();
        let (commands, inbox) = mpsc::unbounded_channel();
        let replay = Replay::from(state);
        let (view, task) = actor::start(options, replay.clone(), commands.downgrade(), inbox);
        Self { name, commands, view, replay, _actor: Arc::new(AbortOnDrop(task)) }
    }

    /// Sends the client's `initialize` to the current process and to each process that replaces it. Calls `then` with
    /// the first response, before later messages from the server are forwarded.
    pub fn initialize(&self, params: Box<RawValue>, then: InitializeCallback) {
        self.replay.initialize(params, then);
        if self.commands.send(Command::Initialize).is_err() {
            self.replay.fail_pending_initialize(&DownReason::Exited(Arc::default()));
        }
    }

    /// Forwards the client's `notifications/initialized`. `line` is that message.
    pub fn initialized(&self, line: Vec<u8>) {
        self.replay.initialized(line, || self.connection_now());
        // Ignore the error: if the actor has exited, so has the server.
        let _ = self.commands.send(Command::Initialized);
    }

    /// Closes the server's input, which asks it to exit.
    pub fn ask_to_exit(&self) {
        // Ignore the error: if the actor has exited, so has the server.
        let _ = self.commands.send(Command::Close);
    }

    /// Waits until a server that was [asked to exit](Self::ask_to_exit) has exited, or 2 seconds have passed. Dropping the
    /// last handle kills it.
    pub async fn wait_for_exit(&self) {
        // Ignores the error, because the server is killed after the time limit.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.commands.closed()).await;
    }

    /// Returns the client state to hand over to another daemon. That daemon replays the state to the processes that it
    /// starts.
    #[must_use]
    pub fn replay_state(&self) -> ReplayState {
        self.replay.state()
    }

    /// Stores a client request if replacement processes must also receive it.
    pub fn store_for_replay(&self, request: &ServerRequest) {
        self.replay.store(request);
    }

    /// Returns `true` if the client is subscribed to this resource.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.replay.is_subscribed(uri)
    }

    /// Returns the connection once the process is running. Restarts the process if it has exited.
    ///
    /// # Errors
    /// Returns [`ServerError`] if the server is not running and cannot be started.
    pub async fn connection(&self) -> Result<ServerConnection, ServerError> {
        self.wait_for_state(
            |state| matches!(state, ServerState::Up { connection, .. } if !connection.is_closed()),
        )
        .await
    }

    /// Returns the connection once the server has confirmed its roots and can take calls.
    ///
    /// # Errors
    /// Returns [`ServerError`] if the server is not running and cannot be started.
    pub async fn ready(&self) -> Result<ServerConnection, ServerError> {
        self.wait_for_state(
            |state| matches!(state, ServerState::Up { connection, ready: true, .. } if !connection.is_closed()),
        )
        .await
    }

    /// Returns the connection without waiting, or `None` if the process is not running.
    #[must_use]
    pub fn connection_now(&self) -> Option<ServerConnection> {
        match &*self.view.state.borrow() {
            ServerState::Up { connection, .. } if !connection.is_closed() => Some(connection.clone()),
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// Returns the connection without waiting, or `None` if the server cannot take calls at the moment.
    #[must_use]
    pub fn ready_now(&self) -> Option<ServerConnection> {
        match &*self.view.state.borrow() {
            ServerState::Up { connection, ready: true, .. } if !connection.is_closed() => {
                Some(connection.clone())
            }
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// Mounts the paths that a call needs, and waits until they are mounted. `named` contains the autostart files that
    /// the user approved for the call.
    ///
    /// # Errors
    /// Returns [`ServerError::NotMounted`] if a path cannot be mounted. The caller must then not forward the call.
    pub async fn lease(
        &self,
        mounts: Vec<MountRequest>,
        named: Vec<CanonicalPath>,
    ) -> Result<MountLease, ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Lease(mounts, named, reply)).map_err(|_| ServerError::SessionClosing)?;
        answer.await.map_err(|_| ServerError::SessionClosing)?
    }

    /// Waits until the mounts show the current files. Does not wait for the server to confirm its roots.
    ///
    /// # Errors
    /// Returns [`ServerError::SessionClosing`] if the session closes while waiting.
    pub async fn refresh(&self) -> Result<(), ServerError> {
        let (reply, done) = oneshot::channel();
        self.commands.send(Command::Refresh(reply)).map_err(|_| ServerError::SessionClosing)?;
        done.await.map_err(|_| ServerError::SessionClosing)
    }

    /// Waits until grants and policy of at least these versions have been applied.
    ///
    /// # Errors
    /// Returns [`ServerError::SessionClosing`] if the session closes while waiting.
    pub async fn wait_until_applied(&self, versions: Versions) -> Result<Applied, ServerError> {
        let mut applied = self.view.applied.clone();
        let reached = applied.wait_for(|a| a.versions.have_reached(versions)).await;
        reached.map(|a| a.clone()).map_err(|_| ServerError::SessionClosing)
    }

    /// Returns the server's access beyond `own`, the folders that the server was started with. Includes pending mounts.
    #[must_use]
    pub fn access_beyond(&self, own: &[CanonicalPath]) -> ServerReach {
        match self.all_mounts(|need| own.iter().any(|own| own.contains(&need.path))) {
            None => ServerReach::Unknown,
            Some(true) => ServerReach::Nothing,
            Some(false) => ServerReach::Something,
        }
    }

    /// Returns `true` if every writable mount, including pending ones, is inside these folders. Returns `false` if the
    /// mounts are unknown.
    #[must_use]
    pub fn writes_only_to(&self, own: &[CanonicalPath]) -> bool {
        let is_own = |need: &MountRequest| own.iter().any(|own| own.contains(&need.path));
        self.all_mounts(|need| !need.writable || is_own(need)) == Some(true)
    }

    /// Returns `true` if all current and pending mounts satisfy `wanted`, or `None` if the mounts are unknown.
    fn all_mounts(&self, matches: impl Fn(&MountRequest) -> bool) -> Option<bool> {
        let before_mounting = {
            let shown = self.view.roots.borrow();
            // The first root exists once the mounts have been computed for the first time.
            if shown.roots.is_empty() {
                return None;
            }
            shown.mounts.iter().all(&matches)
        };
        Some(before_mounting && self.view.applied.borrow().mounted().all(&matches))
    }

    /// Waits until every revocation up to this version of the grants is proven to be effective. Returns the number of
    /// times that the server was restarted to enforce a revocation.
    ///
    /// # Errors
    /// Returns [`ServerError::SessionClosing`] if the session closes while waiting.
    pub async fn wait_until_enforced(&self, grants: u64) -> Result<u64, ServerError> {
        let mut applied = self.view.applied.clone();
        let within = applied.wait_for(|applied| applied.enforced_grants >= grants).await;
        within.map(|applied| applied.restarts).map_err(|_| ServerError::SessionClosing)
    }

    /// Returns the grants, policy and mounts that are currently applied.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.view.applied.borrow().clone()
    }

    /// Returns the mounts and roots that the server should have.
    #[must_use]
    pub fn intended_view(&self) -> ServerView {
        self.view.roots.borrow().clone()
    }

    /// Returns the reason why the server is not running, or `None` if it is running or starting.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &*self.view.state.borrow() {
            ServerState::Down(reason) => Some(reason.to_string()),
            ServerState::Up { .. } | ServerState::Starting(_) => None,
        }
    }

    /// Returns the number of times that the process was restarted.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.view.starts.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Returns the process id of the supervisor, or `None` if the server is not running.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.view.state.borrow() {
            ServerState::Up { pid, .. } => *pid,
            ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    async fn wait_for_state(
        &self,
        ready: impl Fn(&ServerState) -> bool,
    ) -> Result<ServerConnection, ServerError> {
        let mut state = self.view.state.clone();
        let is_down = |s: &ServerState| matches!(s, ServerState::Down(_));
        let ended =
            |s: &ServerState| matches!(s, ServerState::Up { connection, .. } if connection.is_closed());
        // The actor soon marks a process that has just exited as down, so wait for that.
        let ended_just_now = ended(&state.borrow());
        if ended_just_now {
            state.wait_for(|s| !ended(s)).await.map_err(|_| ServerError::SessionClosing)?;
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
                state.changed().await.map_err(|_| ServerError::SessionClosing)?;
            }
        };
        let slow = |_| Err(ServerError::StartTimedOut(self.name.clone()));
        tokio::time::timeout(START_TIMEOUT, answered).await.unwrap_or_else(slow)
    }

    /// Restarts the process at the user's request. The session stays open.
    ///
    /// # Errors
    /// Returns [`ServerError`] if the server cannot be started.
    pub async fn restart_by_user(&self) -> Result<(), ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Restart(reply)).map_err(|_| ServerError::SessionClosing)?;
        answer.await.map_err(|_| ServerError::SessionClosing)?.map_err(|reason| self.down(reason))
    }

    async fn restart(&self, state: &mut watch::Receiver<ServerState>) -> Result<(), ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::StartOptions(reply)).map_err(|_| ServerError::SessionClosing)?;
        let started = answer.await.map_err(|_| ServerError::SessionClosing)?;
        state.mark_changed();
        started.map_err(|reason| self.down(reason))
    }

    /// Creates the error for a server that is not running.
    #[must_use]
    pub fn down(&self, reason: DownReason) -> ServerError {
        ServerError::Down { server: self.name.clone(), reason }
    }
}
