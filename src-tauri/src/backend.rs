//! The shell's interface to the trusted process.
//!
//! - Requests that any client may make use the control protocol, which can show and revoke, but never grant.
//! - Actions that only the user in the app's window may take go to [`Trusted`]. A stand-in backend does not have it.

mod trusted;

pub(crate) use trusted::{TrustedProcess, TrustedProcessError};

use ironcurtain_config::home::Home;
use ironcurtain_consent::LateError;
use ironcurtain_daemon::Daemon;
use ironcurtain_protocol::{Reply, Request};
use std::path::PathBuf;
use std::pin::Pin;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Boxed future that a backend returns.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers the shell's requests.
pub trait Backend: Send + Sync + 'static {
    /// Sends one request.
    fn request(&self, request: Request) -> BoxFuture<Reply>;

    /// Reopens the dialog for a question that expired unanswered. Only the dialog answers it.
    ///
    /// Returns `true` if the same call is now allowed once, or the reason why the question was not
    /// shown.
    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, LateError>>;

    /// Returns a counter that changes whenever sessions, questions, grants or activity change.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Completes when every session is closed and the backend serves nothing.
    fn ended(&self) -> BoxFuture<()>;

    /// Returns the trusted process, if it runs in this program.
    fn trusted(&self) -> Option<Trusted> {
        None
    }
}

/// Handle to the trusted process in this program, and the settings that it was started with.
#[derive(Clone)]
pub struct Trusted {
    /// Handle to its daemon.
    pub daemon: Daemon,
    /// Runtime that the trusted process runs on.
    pub runtime: Handle,
    /// IronCurtain's folders.
    pub home: Home,
    /// Folder of our programs.
    pub programs: PathBuf,
    /// Allows sandboxes to be created by uid 0.
    pub allow_root: bool,
}
