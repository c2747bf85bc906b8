//! Interface between the app's user interface and the trusted process.
//!
//! - Requests that any program of the user may make use the control protocol. It can show and revoke, but never grant.
//! - Actions that are limited to the user in the app's window use [`Trusted`], which a test's backend does not
//!   provide.

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

/// Boxed future that a [`Backend`] returns.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers the requests of the user interface.
pub trait Backend: Send + Sync + 'static {
    /// Sends a request and returns the reply.
    fn request(&self, request: Request) -> BoxFuture<Reply>;

    /// Shows the dialog for an expired question again. Only the dialog answers it.
    ///
    /// Returns `true` if the same call is now allowed once, or the reason that the question was not shown.
    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, LateError>>;

    /// Returns a counter that changes with the sessions, questions, grants or activity.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Completes when all sessions are closed and the backend serves no more requests.
    fn ended(&self) -> BoxFuture<()>;

    /// Returns the trusted process if it runs in this program.
    fn trusted(&self) -> Option<Trusted> {
        None
    }
}

/// Handle to the trusted process in this program, with its settings.
#[derive(Clone)]
pub struct Trusted {
    /// Handle to the daemon.
    pub daemon: Daemon,
    /// Tokio runtime of the trusted process.
    pub runtime: Handle,
    /// IronCurtain's directories.
    pub home: Home,
    /// Directory of IronCurtain's programs.
    pub programs: PathBuf,
    /// `true` if sandboxes may be created as root.
    pub allow_root: bool,
}
