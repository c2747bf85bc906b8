//! Watcher thread for autostart files, and handles to it.
//!
//! - One watcher with one inotify instance serves all sandboxes. A session waits only for replies to its own requests.
//! - Requests are processed in order, and findings are sent to the recorder in order.

use super::last_looks::LastLook;
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
    NoWatcher(String),
    /// A root or sandbox could not be watched.
    #[error("failed to watch `{path}` for autostart files: {problem}")]
    Refused {
        /// Path of the root, or name of the sandbox.
        path: String,
        /// Operating system error.
        problem: String,
    },
    /// The watcher did not reply within `TIMEOUT`.
    #[error("checking `{path}` for autostart files timed out after {n} s", n = TIMEOUT.as_secs())]
    Slow {
        /// Path of the root, or name of the sandbox.
        path: String,
    },
}

/// Notifications from the watcher thread to a sandbox's owner.
#[derive(Debug, Clone, Default)]
struct WatchNews {
    /// Notified when masks may have been lost or countermeasures are due.
    check: Arc<Notify>,
    due: Arc<Mutex<Vec<Countermeasure>>>,
}

enum WatchOrder {
    Begin { name: String, rules: AutostartRules, news: WatchNews, done: oneshot::Sender<io::Result<()>> },
    Open { name: String, root: String, done: oneshot::Sender<io::Result<Vec<String>>> },
    Close { name: String, root: String },
    Named { name: String, path: String },
    Hidden { name: String, paths: Vec<String> },
    Covered { name: String },
    Finish { name: String, last: LastLook },
}

/// Handle to the watcher thread. The thread exits after the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct Watching {
    orders: Sender<WatchOrder>,
    wake: Arc<UnixStream>,
}

/// Watched sandbox. Dropping it starts the final check, so all of the sandbox's processes must have exited first.
#[derive(Debug)]
pub struct SandboxWatch {
    name: String,
    watching: Watching,
    last: Option<LastLook>,
    news: WatchNews,
}

impl Watching {
    /// Spawns the thread.
    ///
    /// # Errors
    /// Returns an error if the system cannot provide a watcher.
    pub(super) fn start(state: &Path, found: mpsc::UnboundedSender<RecorderMessage>) -> io::Result<Self> {
        let watcher = Watcher::new(state)?;
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (orders, inbox) = channel();
        let own = WatcherThread { watcher, inbox, woken, found, news: BTreeMap::new() };
        std::thread::Builder::new().name("autostart".to_owned()).spawn(move || own.run())?;
        Ok(Self { orders, wake: Arc::new(wake) })
    }

    /// Starts watching a sandbox. Roots are added with [`SandboxWatch::open`].
    pub(super) async fn begin(
        &self,
        name: String,
        rules: AutostartRules,
        last: LastLook,
    ) -> Result<SandboxWatch, WatchError> {
        let news = WatchNews::default();
        let (done, begun) = oneshot::channel();
        self.send(WatchOrder::Begin { name: name.clone(), rules, news: news.clone(), done });
        // The handle is created before waiting, so that dropping it also stops a partially started watch.
        let look = SandboxWatch { name: name.clone(), watching: self.clone(), last: Some(last), news };
        answer(&name, begun).await.map(|()| look)
    }

    fn send(&self, order: WatchOrder) {
        // An error is ignored: if the thread has exited, waiting for the reply fails.
        let _ = self.orders.send(order);
        let _ = (&*self.wake).write(&[0]);
    }
}

impl SandboxWatch {
    /// Scans a root and starts watching it before it becomes writable. Returns the paths in it that must be read-only.
    pub async fn open(&self, root: &str) -> Result<Vec<String>, WatchError> {
        let (done, opened) = oneshot::channel();
        self.watching.send(WatchOrder::Open { name: self.name.clone(), root: root.to_owned(), done });
        answer(root, opened).await
    }

    /// Stops watching a root that is no longer writable.
    pub fn close(&self, root: &str) {
        self.watching.send(WatchOrder::Close { name: self.name.clone(), root: root.to_owned() });
    }

    /// Informs the watcher that the user approved this exact file.
    pub fn named(&self, path: &str) {
        self.watching.send(WatchOrder::Named { name: self.name.clone(), path: path.to_owned() });
    }

    /// Informs the watcher of the sandbox's hidden paths.
    pub fn hidden(&self, paths: Vec<String>) {
        self.watching.send(WatchOrder::Hidden { name: self.name.clone(), paths });
    }

    /// Informs the watcher that the supervisor has restored all masks.
    pub fn covered(&self) {
        self.watching.send(WatchOrder::Covered { name: self.name.clone() });
    }

    /// Marks the final check as in progress.
    pub fn ending(&mut self) {
        if let Some(last) = &mut self.last {
            last.begins();
        }
    }

    /// Returns the notification that masks may have been lost. Each time it fires, the owner must ask the supervisor to
    /// check the masks.
    pub fn check(&self) -> Arc<Notify> {
        self.news.check.clone()
    }

    /// Removes and returns the due countermeasures against a sandbox that keeps creating files.
    pub fn due(&self) -> Vec<Countermeasure> {
        std::mem::take(&mut *self.news.due.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for SandboxWatch {
    fn drop(&mut self) {
        self.ending();
        if let Some(last) = self.last.take() {
            self.watching.send(WatchOrder::Finish { name: self.name.clone(), last });
        }
    }
}

async fn answer<T>(path: &str, answer: oneshot::Receiver<io::Result<T>>) -> Result<T, WatchError> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(problem))) => {
            Err(WatchError::Refused { path: path.to_owned(), problem: problem.to_string() })
        }
        Ok(Err(_)) => Err(WatchError::NoWatcher("it has exited".to_owned())),
        Err(_) => Err(WatchError::Slow { path: path.to_owned() }),
    }
}

/// State of the watcher thread.
struct WatcherThread {
    watcher: Watcher,
    inbox: Receiver<WatchOrder>,
    woken: UnixStream,
    found: mpsc::UnboundedSender<RecorderMessage>,
    news: BTreeMap<String, WatchNews>,
}

impl WatcherThread {
    fn run(mut self) {
        loop {
            let fds =
                &mut [PollFd::new(&self.watcher, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            let patience = self.watcher.patience().and_then(|patience| Timespec::try_from(patience).ok());
            match poll(fds, patience.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(problem) => return tracing::error!(%problem, "the watcher for autostart files failed"),
            }
            // The other end closes when the last handle is dropped. The remaining requests are still processed.
            let is_over = matches!((&self.woken).read(&mut [0; 256]), Ok(0));
            while let Ok(order) = self.inbox.try_recv() {
                self.carry_out(order);
            }
            for (name, finding) in self.watcher.read() {
                self.tell(RecorderMessage::Findings { name, findings: vec![finding] });
            }
            for (name, due) in self.watcher.countermeasures() {
                if let Some(news) = self.news.get(&name) {
                    news.due.lock().unwrap_or_else(PoisonError::into_inner).push(due);
                    news.check.notify_one();
                }
            }
            for name in self.watcher.uncovered() {
                if let Some(news) = self.news.get(&name) {
                    news.check.notify_one();
                }
            }
            if is_over {
                return;
            }
        }
    }

    fn carry_out(&mut self, order: WatchOrder) {
        match order {
            // A caller that has stopped waiting no longer needs the sandbox.
            WatchOrder::Begin { name, rules, news, done } => {
                self.news.insert(name.clone(), news);
                let _ = done.send(self.watcher.begin(&name, rules));
            }
            WatchOrder::Open { name, root, done } => {
                if let Err(Ok(_)) = done.send(self.watcher.open(&name, &root)) {
                    let findings = self.watcher.close(&name, &root);
                    self.tell(RecorderMessage::Findings { name, findings });
                }
            }
            WatchOrder::Close { name, root } => {
                let findings = self.watcher.close(&name, &root);
                self.tell(RecorderMessage::Findings { name, findings });
            }
            WatchOrder::Named { name, path } => self.watcher.named(&name, &path),
            WatchOrder::Hidden { name, paths } => self.watcher.hidden(&name, &paths),
            WatchOrder::Covered { name } => self.watcher.covered(&name),
            WatchOrder::Finish { name, last } => {
                self.news.remove(&name);
                let (findings, done) = self.watcher.finish(&name);
                self.tell(RecorderMessage::Findings { name, findings });
                self.tell(RecorderMessage::Finished { last: Some(last), done });
            }
        }
    }

    fn tell(&self, found: RecorderMessage) {
        // The recorder runs as long as the trusted process does.
        let _ = self.found.send(found);
    }
}
