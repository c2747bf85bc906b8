//! Watcher thread for autostart files, and handles to it.
//!
//! - One watcher with one inotify instance serves all sandboxes. A session waits only for replies to its own requests.
//! - Requests are processed in order, and findings are sent to the recorder in order.

use super::final_checks::FinalCheck;
use super::recorder::RecorderMessage;
use ironcurtain_sandbox::autostart::{AutostartRules, Countermeasure, Watcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

/// Timeout for a request. Scanning a root takes a limited time, but the scan may have to wait for other requests.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Reason a sandbox cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher thread is not running.
    #[error("the watcher for autostart files is not running ({0}); restart IronCurtain")]
    NotRunning(String),
    /// A root or sandbox could not be watched.
    #[error("failed to watch `{path}` for autostart files: {problem}")]
    Failed {
        /// Path of the root, or name of the sandbox.
        path: String,
        /// Operating system error.
        problem: String,
    },
    /// The watcher did not reply within `TIMEOUT`.
    #[error("checking `{path}` for autostart files timed out after {n} s", n = TIMEOUT.as_secs())]
    TimedOut {
        /// Path of the root, or name of the sandbox.
        path: String,
    },
}

/// Notifications from the watcher thread to a sandbox's owner.
#[derive(Debug, Clone, Default)]
struct WatchSignals {
    /// Notified when masks may have been lost or countermeasures are due.
    check: Arc<Notify>,
    countermeasures: Arc<Mutex<Vec<Countermeasure>>>,
}

enum WatchRequest {
    Begin {
        name: String,
        rules: AutostartRules,
        signals: WatchSignals,
        done: oneshot::Sender<io::Result<()>>,
    },
    Open {
        name: String,
        root: String,
        done: oneshot::Sender<io::Result<Vec<String>>>,
    },
    Close {
        name: String,
        root: String,
    },
    AddApproved {
        name: String,
        path: String,
    },
    SetHidden {
        name: String,
        paths: Vec<String>,
    },
    MasksRestored {
        name: String,
    },
    Finish {
        name: String,
        final_check: FinalCheck,
    },
}

/// Handle to the watcher thread. The thread exits after the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct WatcherHandle {
    requests: Sender<WatchRequest>,
    wake: Arc<UnixStream>,
}

/// Watched sandbox. Dropping it starts the final check, so all of the sandbox's processes must have exited first.
#[derive(Debug)]
pub struct SandboxWatch {
    name: String,
    watcher: WatcherHandle,
    final_check: Option<FinalCheck>,
    signals: WatchSignals,
}

impl WatcherHandle {
    /// Spawns the thread.
    ///
    /// # Errors
    /// Returns an error if the system cannot provide a watcher.
    pub(super) fn start(state: &Path, recorder: mpsc::UnboundedSender<RecorderMessage>) -> io::Result<Self> {
        let watcher = Watcher::new(state)?;
        let (wake, wake_receiver) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        wake_receiver.set_nonblocking(true)?;
        let (requests, inbox) = channel();
        let own = WatcherThread { watcher, inbox, wake_receiver, recorder, signals: BTreeMap::new() };
        std::thread::Builder::new().name("autostart".to_owned()).spawn(move || own.run())?;
        Ok(Self { requests, wake: Arc::new(wake) })
    }

    /// Starts watching a sandbox. Roots are added with [`SandboxWatch::open`].
    pub(super) async fn begin(
        &self,
        name: String,
        rules: AutostartRules,
        final_check: FinalCheck,
    ) -> Result<SandboxWatch, WatchError> {
        let signals = WatchSignals::default();
        let (done, begun) = oneshot::channel();
        self.send(WatchRequest::Begin { name: name.clone(), rules, signals: signals.clone(), done });
        // The handle is created before waiting so that dropping it also stops a partially started watch.
        let watch = SandboxWatch {
            name: name.clone(),
            watcher: self.clone(),
            final_check: Some(final_check),
            signals,
        };
        await_reply(&name, begun).await.map(|()| watch)
    }

    fn send(&self, request: WatchRequest) {
        // An error is ignored: if the thread has exited, waiting for the reply fails.
        let _ = self.requests.send(request);
        let _ = (&*self.wake).write(&[0]);
    }
}

impl SandboxWatch {
    /// Scans a root and starts watching it before it becomes writable. Returns the paths in it that must be read-only.
    pub async fn open(&self, root: &str) -> Result<Vec<String>, WatchError> {
        let (done, opened) = oneshot::channel();
        self.watcher.send(WatchRequest::Open { name: self.name.clone(), root: root.to_owned(), done });
        await_reply(root, opened).await
    }

    /// Stops watching a root that is no longer writable.
    pub fn close(&self, root: &str) {
        self.watcher.send(WatchRequest::Close { name: self.name.clone(), root: root.to_owned() });
    }

    /// Informs the watcher that the user approved this exact file.
    pub fn add_approved(&self, path: &str) {
        self.watcher.send(WatchRequest::AddApproved { name: self.name.clone(), path: path.to_owned() });
    }

    /// Informs the watcher of the sandbox's hidden paths.
    pub fn set_hidden(&self, paths: Vec<String>) {
        self.watcher.send(WatchRequest::SetHidden { name: self.name.clone(), paths });
    }

    /// Informs the watcher that the supervisor has restored all masks.
    pub fn masks_restored(&self) {
        self.watcher.send(WatchRequest::MasksRestored { name: self.name.clone() });
    }

    /// Marks the final check as in progress.
    pub fn begin_final_check(&mut self) {
        if let Some(final_check) = &mut self.final_check {
            final_check.mark_started();
        }
    }

    /// Returns the notification that masks may have been lost. Each time it fires, the owner must ask the supervisor to
    /// check the masks.
    pub fn mask_check_needed(&self) -> Arc<Notify> {
        self.signals.check.clone()
    }

    /// Removes and returns the due countermeasures against a sandbox that keeps creating files.
    pub fn take_countermeasures(&self) -> Vec<Countermeasure> {
        std::mem::take(&mut *self.signals.countermeasures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for SandboxWatch {
    fn drop(&mut self) {
        self.begin_final_check();
        if let Some(final_check) = self.final_check.take() {
            self.watcher.send(WatchRequest::Finish { name: self.name.clone(), final_check });
        }
    }
}

async fn await_reply<T>(path: &str, answer: oneshot::Receiver<io::Result<T>>) -> Result<T, WatchError> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(problem))) => {
            Err(WatchError::Failed { path: path.to_owned(), problem: problem.to_string() })
        }
        Ok(Err(_)) => Err(WatchError::NotRunning("it has exited".to_owned())),
        Err(_) => Err(WatchError::TimedOut { path: path.to_owned() }),
    }
}

/// State of the watcher thread.
struct WatcherThread {
    watcher: Watcher,
    inbox: Receiver<WatchRequest>,
    wake_receiver: UnixStream,
    recorder: mpsc::UnboundedSender<RecorderMessage>,
    signals: BTreeMap<String, WatchSignals>,
}

impl WatcherThread {
    fn run(mut self) {
        loop {
            let fds = &mut [
                PollFd::new(&self.watcher, PollFlags::IN),
                PollFd::new(&self.wake_receiver, PollFlags::IN),
            ];
            let timeout = self.watcher.poll_timeout().and_then(|timeout| Timespec::try_from(timeout).ok());
            match poll(fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(problem) => return tracing::error!(%problem, "the watcher for autostart files failed"),
            }
            // The other end closes when the last handle is dropped. The remaining requests are still processed.
            let is_closed = matches!((&self.wake_receiver).read(&mut [0; 256]), Ok(0));
            while let Ok(request) = self.inbox.try_recv() {
                self.handle_request(request);
            }
            for (name, finding) in self.watcher.process_events() {
                self.send_to_recorder(RecorderMessage::Findings { name, findings: vec![finding] });
            }
            for (name, countermeasure) in self.watcher.take_countermeasures() {
                if let Some(signals) = self.signals.get(&name) {
                    signals
                        .countermeasures
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(countermeasure);
                    signals.check.notify_one();
                }
            }
            for name in self.watcher.take_uncovered() {
                if let Some(signals) = self.signals.get(&name) {
                    signals.check.notify_one();
                }
            }
            if is_closed {
                return;
            }
        }
    }

    fn handle_request(&mut self, request: WatchRequest) {
        match request {
            // A caller that has stopped waiting no longer needs the sandbox.
            WatchRequest::Begin { name, rules, signals, done } => {
                self.signals.insert(name.clone(), signals);
                let _ = done.send(self.watcher.add_sandbox(&name, rules));
            }
            WatchRequest::Open { name, root, done } => {
                if let Err(Ok(_)) = done.send(self.watcher.open_root(&name, &root)) {
                    let findings = self.watcher.close_root(&name, &root);
                    self.send_to_recorder(RecorderMessage::Findings { name, findings });
                }
            }
            WatchRequest::Close { name, root } => {
                let findings = self.watcher.close_root(&name, &root);
                self.send_to_recorder(RecorderMessage::Findings { name, findings });
            }
            WatchRequest::AddApproved { name, path } => self.watcher.add_approved(&name, &path),
            WatchRequest::SetHidden { name, paths } => self.watcher.set_hidden(&name, &paths),
            WatchRequest::MasksRestored { name } => self.watcher.masks_restored(&name),
            WatchRequest::Finish { name, final_check } => {
                self.signals.remove(&name);
                let (findings, done) = self.watcher.finish(&name);
                self.send_to_recorder(RecorderMessage::Findings { name, findings });
                self.send_to_recorder(RecorderMessage::CheckFinished { check: Some(final_check), done });
            }
        }
    }

    fn send_to_recorder(&self, message: RecorderMessage) {
        // The recorder runs as long as the trusted process does.
        let _ = self.recorder.send(message);
    }
}
