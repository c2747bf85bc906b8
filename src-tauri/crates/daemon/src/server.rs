//! One MCP server of one session: its process, what it can see, and the conversation with it.
//!
//! - [`ServerHandle`] is the handle a session holds. The process behind it may end and be started again; calls that were
//!   under way fail, and none runs twice.
//! - One task (`actor`) owns the process and what is mounted; one task per process (`connection`) owns the conversation.

mod actor;
mod client_answer;
mod connection;
pub mod control;
mod down;
mod mounted;
pub mod process;
mod request;
mod roots;
mod start_error;
mod told;

pub use actor::{ActorOptions, Applied, Versions};
pub use client_answer::{ClientAnswer, ClientRequest};
#[cfg(feature = "fuzzing")]
pub use connection::ServerEdge;
pub use connection::{
    AtServer, MemoryShare, PendingRequest, SamplingRequest, ServerAnswer, ServerConnection, UnansweredRequest,
};
pub(crate) use control::LISTENING;
pub use control::SupervisorError;
pub use down::{DownReason, NoAnswer, ServerExit};
pub use process::Containment;
pub use request::{
    Completion, CompletionOf, LOG_LEVELS, RequestBody, RequestMeta, ServerRequest, TaskOptions,
};
pub use roots::{ServerView, Suspension, still_there};
pub use start_error::{ContainmentError, ServerStartError};
pub use told::{OnGreeted, ToldState};

use crate::mounts::Need;
use actor::{ActorView, Command, ServerState};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::ServerReach;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use told::Told;

/// The time for which a call waits for its server to be up.
const START_BOUND: Duration = Duration::from_secs(30);

/// Why a server cannot take a call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// It could not be started, or ended.
    #[error("the server `{server}` is not running: {reason}")]
    Down {
        /// Its name.
        server: String,
        /// Why.
        reason: DownReason,
    },
    /// It takes too long.
    #[error("the server `{0}` did not start within {n} s", n = START_BOUND.as_secs())]
    Slow(String),
    /// A path could not be shown to it.
    #[error("the kernel could not show `{path}` to the server: {reason}")]
    NotShown {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The session is ending.
    #[error("the session is ending")]
    Ending,
}

/// A handle to one server of one session. When the last one is dropped the server is killed, whatever it is doing.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    name: String,
    commands: mpsc::UnboundedSender<Command>,
    seen: ActorView,
    told: Told,
    _actor: Arc<AbortOnDrop>,
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The paths that one call under way needs to see. Dropped, they are taken away again.
#[derive(Debug)]
pub struct MountLease {
    id: u64,
    needs: Vec<Need>,
    commands: mpsc::UnboundedSender<Command>,
}

impl MountLease {
    /// The paths that it shows.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }
}

impl Drop for MountLease {
    fn drop(&mut self) {
        // Without the actor there is nothing mounted.
        let _ = self.commands.send(Command::Release(self.id));
    }
}

impl ServerHandle {
    /// Starts the actor; the process is started at once, and told what the client told an earlier one.
    #[must_use]
    pub fn start(options: ActorOptions, told: ToldState) -> Self {
        let name = options.server.name.clone();
        let (commands, inbox) = mpsc::unbounded_channel();
        let told = Told::from(told);
        let (seen, task) = actor::start(options, told.clone(), commands.downgrade(), inbox);
        Self { name, commands, seen, told, _actor: Arc::new(AbortOnDrop(task)) }
    }

    /// Gives the server the client's greeting; every later process of it is greeted the same way. The answer comes before
    /// anything that the server says after it.
    pub fn greet(&self, params: Box<RawValue>, then: OnGreeted) {
        self.told.greets(params, then);
        if self.commands.send(Command::Greet).is_err() {
            self.told.give_up(&DownReason::Ended(Arc::default()));
        }
    }

    /// The client said that it is initialized, with this line.
    pub fn initialized(&self, line: Vec<u8>) {
        self.told.initialized(line, || self.connection_now());
        // Without the actor there is nobody to tell.
        let _ = self.commands.send(Command::Initialized);
    }

    /// Everything that every later process is to be told.
    #[must_use]
    pub fn told(&self) -> ToldState {
        self.told.state()
    }

    /// Keeps a request of the client that every later process is to be sent too, where it is one.
    pub fn keep(&self, request: &ServerRequest) {
        self.told.keep(request);
    }

    /// Returns `true` if the client subscribed to the resource of this address.
    #[must_use]
    pub fn follows(&self, uri: &str) -> bool {
        self.told.follows(uri)
    }

    /// The conversation, as soon as the process runs; started again if it ended.
    ///
    /// # Errors
    /// [`ServerError`], when it does not run and cannot be started.
    pub async fn connection(&self) -> Result<ServerConnection, ServerError> {
        self.when(|state| matches!(state, ServerState::Up { connection, .. } if !connection.is_over())).await
    }

    /// The conversation, as soon as the server knows what it may see.
    ///
    /// # Errors
    /// As [`ServerHandle::connection`].
    pub async fn ready(&self) -> Result<ServerConnection, ServerError> {
        self.when(
            |state| matches!(state, ServerState::Up { connection, ready: true, .. } if !connection.is_over()),
        )
        .await
    }

    /// The conversation, if there is one right now.
    #[must_use]
    pub fn connection_now(&self) -> Option<ServerConnection> {
        match &*self.seen.state.borrow() {
            ServerState::Up { connection, .. } if !connection.is_over() => Some(connection.clone()),
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// The conversation, if the server can take a call right now.
    #[must_use]
    pub fn ready_now(&self) -> Option<ServerConnection> {
        match &*self.seen.state.borrow() {
            ServerState::Up { connection, ready: true, .. } if !connection.is_over() => {
                Some(connection.clone())
            }
            ServerState::Up { .. } | ServerState::Starting(_) | ServerState::Down(_) => None,
        }
    }

    /// Shows the server what a call needs, and waits until it is there. `named` are the files that an answer of the person to
    /// this call named.
    ///
    /// # Errors
    /// [`ServerError::NotShown`]: the call must not be forwarded.
    pub async fn lease(
        &self,
        needs: Vec<Need>,
        named: Vec<CanonicalPath>,
    ) -> Result<MountLease, ServerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Lease(needs, named, reply)).map_err(|_| ServerError::Ending)?;
        answer.await.map_err(|_| ServerError::Ending)?
    }

    /// Waits until what is mounted is what stands there now, and not for the server to understand it.
    ///
    /// # Errors
    /// [`ServerError::Ending`], when the session ends meanwhile.
    pub async fn refresh(&self) -> Result<(), ServerError> {
        let (reply, done) = oneshot::channel();
        self.commands.send(Command::Refresh(reply)).map_err(|_| ServerError::Ending)?;
        done.await.map_err(|_| ServerError::Ending)
    }

    /// Waits until what the server sees follows from these grants and this policy, or later ones.
    ///
    /// # Errors
    /// [`ServerError::Ending`], when the session ends meanwhile.
    pub async fn caught_up(&self, versions: Versions) -> Result<Applied, ServerError> {
        let mut applied = self.seen.applied.clone();
        let reached = applied.wait_for(|a| a.versions.have_reached(versions)).await;
        reached.map(|a| a.clone()).map_err(|_| ServerError::Ending)
    }

    /// The reach of a server that was started with nothing beside these folders, by what it is shown and is about to be.
    #[must_use]
    pub fn reach_beyond(&self, own: &[CanonicalPath]) -> ServerReach {
        let is_own = |need: &Need| own.iter().any(|own| own.contains(&need.path));
        let about_to_be = {
            let shown = self.seen.roots.borrow();
            // The first root is there from the first look at what it is to be shown.
            if shown.roots.is_empty() {
                return ServerReach::Unknown;
            }
            shown.needs.iter().all(is_own)
        };
        let is_shut = about_to_be && self.seen.applied.borrow().mounted().all(is_own);
        if is_shut { ServerReach::Nothing } else { ServerReach::Something }
    }

    /// Waits until what these grants lack is gone from the server, with proof; the number of times that it was restarted for such
    /// a proof.
    ///
    /// # Errors
    /// [`ServerError::Ending`], when the session ends meanwhile.
    pub async fn is_within(&self, grants: u64) -> Result<u64, ServerError> {
        let mut applied = self.seen.applied.clone();
        let within = applied.wait_for(|applied| applied.within >= grants).await;
        within.map(|applied| applied.restarts).map_err(|_| ServerError::Ending)
    }

    /// The grants and the policy as applied so far.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.seen.applied.borrow().clone()
    }

    /// The paths that the server sees, and the roots that it is told.
    #[must_use]
    pub fn shown(&self) -> ServerView {
        self.seen.roots.borrow().clone()
    }

    /// Why it does not run, if it does not.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &*self.seen.state.borrow() {
            ServerState::Down(reason) => Some(reason.to_string()),
            ServerState::Up { .. } | ServerState::Starting(_) => None,
        }
    }

    /// The number of times that it was started again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.seen.starts.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Process id of the supervisor, while it runs.
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
        // One that has just ended is known to be down in a moment.
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

    /// Stops the process and starts it again, by the person's wish; the session lives on.
    ///
    /// # Errors
    /// [`ServerError`], when it does not run then.
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

    /// The error that says why it does not run.
    #[must_use]
    pub fn down(&self, reason: DownReason) -> ServerError {
        ServerError::Down { server: self.name.clone(), reason }
    }
}
