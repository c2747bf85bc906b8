//! Runs the trusted process on its own thread and Tokio runtime, so that the trusted process and the user interface
//! never block each other.

use super::{Backend, BoxFuture, Trusted};
use ironcurtain_consent::{Consent, ReopenError};
use ironcurtain_daemon::{Daemon, DaemonOptions, StartError, start};
use ironcurtain_protocol::{ErrorCode, Reply, Request};
use std::io;
use std::sync::{Arc, mpsc};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Number of worker threads of the trusted process.
const WORKERS: usize = 2;

/// Trusted process in this program.
pub(crate) struct TrustedProcess {
    daemon: Daemon,
    runtime: Handle,
    options: DaemonOptions,
}

/// Reason the trusted process is not running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustedProcessError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("failed to spawn a thread: {0}")]
    Thread(#[from] io::Error),
    #[error("IronCurtain stopped during startup; see its log")]
    Exited,
}

impl TrustedProcessError {
    /// Returns `true` if the trusted process did not start because another instance of this user is running.
    pub(crate) fn is_already_running(&self) -> bool {
        match self {
            Self::Start(error) => error.is_already_running(),
            Self::Thread(_) | Self::Exited => false,
        }
    }
}

impl TrustedProcess {
    /// Starts the trusted process. Returns after it has begun serving requests or failed to start.
    pub(crate) fn start(
        options: DaemonOptions,
        consent: Arc<dyn Consent>,
    ) -> Result<Self, TrustedProcessError> {
        let (started, told) = mpsc::channel();
        let options_copy = options.clone();
        std::thread::Builder::new().name("trusted".into()).spawn(move || {
            let runtime = match Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error.into()))),
            };
            match runtime.block_on(start(options, consent)) {
                Ok(daemon) => {
                    let this = Self {
                        daemon: daemon.clone(),
                        runtime: runtime.handle().clone(),
                        options: options_copy,
                    };
                    if started.send(Ok(this)).is_ok() {
                        runtime.block_on(serve(daemon));
                    }
                }
                Err(error) => drop(started.send(Err(error.into()))),
            }
        })?;
        told.recv().map_err(|_| TrustedProcessError::Exited)?
    }
}

/// Serves requests until the app, the `ironcurtain` command or a signal stops the trusted process.
async fn serve(daemon: Daemon) {
    tokio::select! {
        () = daemon.ended() => {}
        () = termination_requested() => {
            daemon.request(Request::Shutdown).await;
            daemon.ended().await;
        }
    }
}

#[cfg(unix)]
async fn termination_requested() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        // Without handlers, signals kill the process. This also closes every session.
        (Err(_), _) | (_, Err(_)) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn termination_requested() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

impl Backend for TrustedProcess {
    fn request(&self, request: Request) -> BoxFuture<Reply> {
        let daemon = self.daemon.clone();
        let answer = self.runtime.spawn(async move { daemon.request(request).await });
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| Reply::Failed {
                code: ErrorCode::Ending,
                message: "IronCurtain is shutting down; start it again".to_owned(),
            })
        })
    }

    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, ReopenError>> {
        let daemon = self.daemon.clone();
        let asked = self.runtime.spawn(async move { daemon.ask_again(&question).await });
        Box::pin(async move { asked.await.unwrap_or(Err(ReopenError::Ending)) })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.daemon.changes()
    }

    fn ended(&self) -> BoxFuture<()> {
        let daemon = self.daemon.clone();
        Box::pin(async move { daemon.ended().await })
    }

    fn trusted(&self) -> Option<Trusted> {
        let DaemonOptions { home, programs, allow_root } = self.options.clone();
        let (daemon, runtime) = (self.daemon.clone(), self.runtime.clone());
        Some(Trusted { daemon, runtime, home, programs, allow_root })
    }
}
