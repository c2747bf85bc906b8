//! Interface between the app's user interface and the trusted process.
//!
//! - Requests that any of the user's programs may send go through the control protocol. The protocol can list and
//!   revoke grants but never create them.
//! - Actions reserved for the user in the app's window go through [`Trusted`]. Test backends do not provide it.

mod trusted;

pub(crate) use trusted::{TrustedProcess, TrustedProcessError};

use ironcurtain_config::home::Home;
use ironcurtain_consent::ReopenError;
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

    /// Reopens the dialog of an expired question. Only the user's answer in the dialog counts.
    ///
    /// Returns `true` if the user allowed the call once, or an error if the question was not shown.
    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, ReopenError>>;

    /// Returns a counter that increases whenever sessions, questions, grants or activity change.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Completes after all sessions have been closed and the backend has stopped serving requests.
    fn ended(&self) -> BoxFuture<()>;

    /// Returns the trusted process, if it runs in this program.
    fn trusted(&self) -> Option<Trusted> {
        None
    }
}

/// Trusted process that runs in this program, with its settings.
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
    /// `true` if sandboxes can be created as root.
    pub allow_root: bool,
}
