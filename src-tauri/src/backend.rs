//! The trusted process as the shell sees it.
//!
//! - What anybody may ask for goes through the control protocol, which can show and take away, never give.
//! - What only the person in the app's own window may do goes to [`Trusted`], which a stand-in has none of.

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

/// Something that comes later.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Whoever answers the shell's requests.
pub trait Backend: Send + Sync + 'static {
    /// Sends one request.
    fn request(&self, request: Request) -> BoxFuture<Reply>;

    /// Shows the person a question again that nobody answered in time, in the dialog. `true` where the same call passes once
    /// from now on; else why it was not shown. The dialog alone answers.
    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, LateError>>;

    /// A number that moves whenever sessions, questions, grants or activity change.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Waits until every session has ended and nothing is served any more.
    fn ended(&self) -> BoxFuture<()>;

    /// The trusted process, if it runs in this program.
    fn trusted(&self) -> Option<Trusted> {
        None
    }
}

/// The trusted process in this program, and what it was started with.
#[derive(Clone)]
pub struct Trusted {
    /// Its handle.
    pub daemon: Daemon,
    /// Its threads.
    pub runtime: Handle,
    /// Its folders.
    pub home: Home,
    /// The folder that our programs are in.
    pub programs: PathBuf,
    /// Sandboxes may be made by uid 0.
    pub allow_root: bool,
}
