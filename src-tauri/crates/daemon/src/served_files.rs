//! Access to the files that a sandbox's view serves: judges each access, asks the user if necessary, and applies
//! revocations. Used by runs and by servers whose entry has `"access": "ask"`.
//!
//! - A file is opened only after the access has been judged by the same rules, grants and questions as a call.
//! - Folders to which the sandbox has full access are mounted.
//! - INVARIANT: the view permits an access without asking only while judging the access again would allow it.

mod asking;
mod holders;
mod judge;
mod link;
mod mounts;
mod permissions;
mod processes;
mod profile;
mod raise;
mod searching;
mod serving;

use crate::run_notes::RunNotes;
use crate::services::Services;
use ironcurtain_consent::Principal;
use ironcurtain_containment::ClosedPaths;
use ironcurtain_grants::GrantSubject;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_sandbox::autostart::StartupFiles;
use ironcurtain_sandbox::file_access::ToView;
use ironcurtain_sandbox::{ControlAnswer, ControlOp};
use permissions::Permissions;
pub(crate) use processes::{inside, is_inside};
pub(crate) use profile::{ProfileError, ProfileGrants, mounts, plan};
pub(crate) use raise::RaiseError;
use searching::{AskedFolders, Searches};
pub(crate) use serving::ServingFiles;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of denials without a delay. Every denial is recorded, so further ones are delayed, or a sandbox could
/// fill the disk.
const MAX_PROMPT_DENIALS: u64 = 1000;

/// Delay of each further denial. Denials are delayed one after the other.
const DENIAL_DELAY: Duration = Duration::from_millis(50);

/// Returns the names of the tools whose calls the server is handling.
pub(crate) type CallsInProgress = dyn Fn() -> Vec<String> + Send + Sync;

/// Request to the task that owns the supervisor connection, with a channel for the response.
pub(crate) type SandboxOrder = (ControlOp, oneshot::Sender<Option<ControlAnswer>>);

/// State of the file access of one sandbox.
pub(crate) struct ServedFiles {
    /// Session id.
    pub(crate) id: String,
    pub(crate) principal: Arc<Principal>,
    services: Services,
    resolver: Resolver,
    pub(crate) notes: Arc<RunNotes>,
    pub(crate) profile: ProfileGrants,
    /// Writable folders that were mounted at the start and cannot be revoked.
    mounted: Vec<CanonicalPath>,
    /// Paths that the server's entry closes, regardless of rules and grants.
    closed: ClosedPaths,
    startup: StartupFiles,
    pid: u32,
    calls: Box<CallsInProgress>,
    pub(crate) counts: Arc<AccessCounts>,
    permissions: Permissions,
    to_sandbox: mpsc::UnboundedSender<SandboxOrder>,
    /// Number of the view's latest mount reservation.
    reserved: watch::Sender<u64>,
    searches: Searches,
    asked: AskedFolders,
    /// Locked during the delay of a denial.
    delayed: tokio::sync::Mutex<()>,
    to_view: mpsc::UnboundedSender<ToView>,
    end: CancellationToken,
    /// Reason IronCurtain terminated the sandbox, if it did.
    ended_because: OnceLock<String>,
    /// Cancelled once the sandbox has exited.
    gone: CancellationToken,
}

/// Counters of decisions on accesses.
#[derive(Debug, Default)]
pub(crate) struct AccessCounts {
    pub(crate) allowed: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) asked: AtomicU64,
}

/// Options for [`ServedFiles::new`].
pub(crate) struct ServedFilesOptions {
    /// Session id.
    pub(crate) id: String,
    /// Principal that questions name: the client and server, or the run's program.
    pub(crate) principal: Arc<Principal>,
    pub(crate) services: Services,
    pub(crate) resolver: Resolver,
    pub(crate) notes: Arc<RunNotes>,
    /// Access that the sandbox has from the start. Empty for a server.
    pub(crate) profile: ProfileGrants,
    /// Writable folders that were mounted at the start and cannot be revoked.
    pub(crate) mounted: Vec<CanonicalPath>,
    /// Paths that the server's entry closes, regardless of rules and grants.
    pub(crate) closed: ClosedPaths,
    /// Process id of the supervisor.
    pub(crate) pid: u32,
    pub(crate) calls: Box<CallsInProgress>,
    pub(crate) counts: Arc<AccessCounts>,
}

/// Receivers for messages to the view and for orders to the supervisor.
pub(crate) struct FilesInbox {
    pub(crate) for_view: mpsc::UnboundedReceiver<ToView>,
    pub(crate) orders: mpsc::UnboundedReceiver<SandboxOrder>,
}

impl ServedFiles {
    pub(crate) fn new(options: ServedFilesOptions) -> (Arc<Self>, FilesInbox) {
        let (to_view, for_view) = mpsc::unbounded_channel();
        let (to_sandbox, orders) = mpsc::unbounded_channel();
        let ServedFilesOptions {
            id,
            principal,
            services,
            resolver,
            notes,
            profile,
            mounted,
            closed,
            pid,
            calls,
            counts,
        } = options;
        let files = Self {
            permissions: Permissions::new(profile.permitted()),
            startup: StartupFiles::new(services.snapshot().home.as_str().to_owned()),
            searches: Searches::new(services.config.questions_per_minute),
            asked: AskedFolders::default(),
            delayed: tokio::sync::Mutex::default(),
            reserved: watch::Sender::new(0),
            end: CancellationToken::new(),
            ended_because: OnceLock::new(),
            gone: CancellationToken::new(),
            id,
            principal,
            services,
            resolver,
            notes,
            profile,
            mounted,
            closed,
            pid,
            calls,
            counts,
            to_sandbox,
            to_view,
        };
        (Arc::new(files), FilesInbox { for_view, orders })
    }

    /// Requests termination of the sandbox without waiting for it to exit.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Requests termination of the sandbox for this reason.
    fn end_because(&self, why: String) {
        // The first reason counts.
        let _ = self.ended_because.set(why);
        self.end();
    }

    /// Returns the reason IronCurtain terminated the sandbox, if it did.
    pub(crate) fn ended_because(&self) -> Option<String> {
        self.ended_because.get().cloned()
    }

    /// Returns `true` if termination of the sandbox was requested.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Completes when termination of the sandbox is requested.
    pub(crate) async fn ending(&self) {
        self.end.cancelled().await;
    }

    /// Completes when the sandbox has exited.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Records that the sandbox has exited.
    pub(crate) fn has_gone(&self) {
        self.gone.cancel();
    }

    /// Returns `true` if grants for this subject apply to the sandbox.
    pub(crate) fn may_use(&self, subject: &GrantSubject) -> bool {
        self.principal.is_covered_by(subject)
    }
}
