//! Currently allowed directories: those from the command line until the client sends its roots.
//!
//! - After a change is announced, a call waits at most [`TIMEOUT`] for the new roots and uses them.
//! - Access is never widened by accident. Nothing is allowed if the list of roots is empty, if no root is a directory,
//!   or if the client fails to resend its roots.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use rmcp::{Peer, RoleServer, ServiceError};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::allowed_directories::AllowedDirectories;
use crate::{log, paths, root_uri};

/// Timeout for the client's response to `roots/list`.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Allowed directories and pending changes to the client's roots.
#[derive(Debug)]
pub(crate) struct Roots {
    current: Mutex<Current>,
    announced: AtomicU64,
    applied: watch::Sender<u64>,
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Current {
    allowed: Arc<AllowedDirectories>,
    from_client: bool,
}

impl Roots {
    /// Allows the directories from the command line.
    ///
    /// # Errors
    /// Returns an error if directories were given but none of them is usable.
    pub(crate) fn from_command_line(directories: &[PathBuf]) -> anyhow::Result<Self> {
        let home = paths::home();
        let mut usable = Vec::new();
        for directory in directories {
            let expanded = match directory.to_str() {
                Some(text) => paths::expand_home(text, home.as_deref()),
                None => directory.clone(),
            };
            let absolute = paths::normalize(&std::path::absolute(expanded)?);
            match std::fs::canonicalize(&absolute) {
                // A directory whose path contains a symlink is allowed under both of its paths.
                Ok(real) if real.is_dir() && real != absolute => usable.extend([absolute, real]),
                Ok(real) if real.is_dir() => usable.push(real),
                Ok(_) => log(&format!("warning: {} is not a directory, skipping", absolute.display())),
                Err(error) => log(&format!("warning: cannot use {}: {error}", absolute.display())),
            }
        }
        if usable.is_empty() && !directories.is_empty() {
            bail!("none of the directories on the command line can be used");
        }
        Ok(Self {
            current: Mutex::new(Current {
                allowed: Arc::new(AllowedDirectories::new(usable)),
                from_client: false,
            }),
            announced: AtomicU64::new(0),
            applied: watch::Sender::new(0),
            refreshing: tokio::sync::Mutex::new(()),
        })
    }

    /// Records that the client announced a change to its roots. Must be called in message order.
    pub(crate) fn announce(&self) {
        self.announced.fetch_add(1, Ordering::AcqRel);
    }

    /// Requests and applies the client's roots, and repeats this until all announced changes are applied.
    pub(crate) async fn refresh(&self, client: &Peer<RoleServer>) {
        let _one_at_a_time = self.refreshing.lock().await;
        loop {
            let target = self.announced.load(Ordering::Acquire);
            if *self.applied.borrow() >= target {
                return;
            }
            if supports_roots(client) {
                self.apply(request_roots(client).await).await;
            }
            self.applied.send_replace(target);
        }
    }

    /// Waits for all announced changes and returns the allowed directories.
    pub(crate) async fn current(&self) -> Arc<AllowedDirectories> {
        let target = self.announced.load(Ordering::Acquire);
        let mut applied = self.applied.subscribe();
        // `refresh` has its own timeout, so this timeout only guards against bugs. On timeout, nothing is allowed,
        // because the previous directories may no longer be allowed.
        match timeout(TIMEOUT * 2, applied.wait_for(|applied| *applied >= target)).await {
            Ok(Ok(_)) => Arc::clone(&self.lock().allowed),
            Ok(Err(_)) | Err(_) => Arc::default(),
        }
    }

    async fn apply(&self, answer: Result<Vec<String>, RootsRequestError>) {
        let directories = match answer {
            Ok(uris) => {
                let usable = tokio::task::spawn_blocking(move || usable_directories(&uris)).await;
                usable.unwrap_or_default()
            }
            Err(problem) if self.lock().from_client => {
                log(&format!("warning: the client did not send its roots ({problem}); nothing is allowed"));
                Vec::new()
            }
            Err(problem) => {
                log(&format!("warning: the client did not send its roots ({problem})"));
                return;
            }
        };
        let next = Arc::new(AllowedDirectories::new(directories));
        let mut current = self.lock();
        current.allowed.replace_with(&next);
        *current = Current { allowed: next, from_client: true };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason the client's roots are unknown.
#[derive(Debug, thiserror::Error)]
enum RootsRequestError {
    /// The request failed, or the client answered with an error.
    #[error(transparent)]
    Refused(#[from] ServiceError),
    /// The client did not answer within [`TIMEOUT`].
    #[error("no response within {n} s", n = TIMEOUT.as_secs())]
    TimedOut,
}

fn supports_roots(client: &Peer<RoleServer>) -> bool {
    client.peer_info().is_some_and(|client| client.capabilities.roots.is_some())
}

#[expect(deprecated, reason = "deprecated in 2026-07-28; this server supports earlier protocol versions")]
async fn request_roots(client: &Peer<RoleServer>) -> Result<Vec<String>, RootsRequestError> {
    match timeout(TIMEOUT, client.list_roots()).await {
        Ok(Ok(answer)) => Ok(answer.roots.into_iter().map(|root| root.uri).collect()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(RootsRequestError::TimedOut),
    }
}

fn usable_directories(uris: &[String]) -> Vec<PathBuf> {
    let home = paths::home();
    let mut directories = Vec::new();
    for uri in uris {
        let real = root_uri::to_path(uri, home.as_deref())
            .and_then(|path| std::fs::canonicalize(path).ok())
            .filter(|real| real.is_dir());
        match real {
            Some(real) if directories.contains(&real) => {}
            Some(real) => directories.push(real),
            None => log(&format!("warning: root {uri:?} is not an accessible directory, skipping")),
        }
    }
    directories
}
