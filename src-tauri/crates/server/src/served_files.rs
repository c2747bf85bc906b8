//! Access to the files that a sandbox's view serves: judges each access, asks the user if necessary, and applies
//! revocations. Used by runs and by servers whose entry has `"access": "ask"`.
//!
//! - A file is opened only after the access has been judged by the same rules, grants and questions as a call.
//! - Folders to which the sandbox has full access are mounted.
//! - INVARIANT: the view permits an access without asking only while judging the access again would allow it.

mod access_request;
mod asked_folders;
mod asking;
mod folder_reads;
mod holders;
mod judge;
mod link;
mod mounts;
mod permissions;
mod processes;
mod profile;
mod searching;
mod serving;

use crate::run_notes::RunNotes;
pub use access_request::AccessRequestError;
use asked_folders::AskedFolders;
use ironcurtain_consent::Principal;
use ironcurtain_containment::HiddenPaths;
use ironcurtain_grants::GrantSubject;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_sandbox::autostart::StartupFiles;
use ironcurtain_sandbox::file_access::ToView;
use ironcurtain_sandbox::{ControlAnswer, ControlOp};
use ironcurtain_services::{RateLimiter, Services};
pub use judge::is_unrestricted;
use permissions::Permissions;
pub use processes::{is_in_sandbox, sandbox_processes};
pub use profile::{EVERYTHING, ProfileGrants, ProfileGrantsError, mounts, plan, restricted};
use searching::Searches;
pub use serving::ServingFiles;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of denials that are recorded without delay. A program can search many files at once.
const MAX_DENIALS: u32 = 10_000;

/// Returns the names of the tools whose calls the server is handling.
pub type CallsInProgress = dyn Fn() -> Vec<String> + Send + Sync;

/// Request to the task that owns the supervisor connection, with a channel for the response.
pub type SandboxOrder = (ControlOp, oneshot::Sender<Option<ControlAnswer>>);

/// File access state of one sandbox.
pub struct ServedFiles {
    /// Session id.
    pub id: String,
    /// Principal that questions name: the client and server, or the run's program.
    pub principal: Arc<Principal>,
    services: Services,
    resolver: Resolver,
    /// Notes for the terminal that started the run.
    pub notes: Arc<RunNotes>,
    /// Access that the sandbox has from the start. Empty for a server.
    pub profile: ProfileGrants,
    /// Writable folders that were mounted at the start and cannot be revoked.
    mounted: Vec<CanonicalPath>,
    /// Working folder of a run, or `None` if it is not mounted.
    working_folder: Mutex<Option<CanonicalPath>>,
    /// Paths that the server's entry makes inaccessible, regardless of rules and grants.
    closed: HiddenPaths,
    startup: StartupFiles,
    pid: u32,
    calls: Box<CallsInProgress>,
    /// `true` if pausing stops the sandbox's programs, as in a run.
    is_frozen_when_paused: bool,
    /// Counters of decisions.
    pub counts: Arc<AccessCounts>,
    permissions: Permissions,
    /// Limits the rate of denials, each of which is recorded.
    pub pace: RateLimiter,
    to_sandbox: mpsc::UnboundedSender<SandboxOrder>,
    /// Number of the view's latest mount reservation.
    reserved: watch::Sender<u64>,
    searches: Searches,
    asked: AskedFolders,
    to_view: mpsc::UnboundedSender<ToView>,
    end: CancellationToken,
    /// Reason IronCurtain terminated the sandbox, if it did.
    end_reason: OnceLock<String>,
    /// Cancelled once the sandbox has exited.
    exited: CancellationToken,
}

/// Counters of decisions on accesses.
#[derive(Debug, Default)]
pub struct AccessCounts {
    /// Number of allowed accesses.
    pub allowed: AtomicU64,
    /// Number of denied accesses.
    pub denied: AtomicU64,
    /// Number of questions.
    pub asked: AtomicU64,
}

/// Options for [`ServedFiles::new`].
pub struct ServedFilesOptions {
    /// Session id.
    pub id: String,
    /// Principal that questions name: the client and server, or the run's program.
    pub principal: Arc<Principal>,
    /// Services that all sessions share.
    pub services: Services,
    /// Resolver for the paths of accesses.
    pub resolver: Resolver,
    /// Notes for the terminal that started the run.
    pub notes: Arc<RunNotes>,
    /// Access that the sandbox has from the start. Empty for a server.
    pub profile: ProfileGrants,
    /// Writable folders that were mounted at the start and cannot be revoked.
    pub mounted: Vec<CanonicalPath>,
    /// Working folder of a run, if it was mounted at the start.
    pub working_folder: Option<CanonicalPath>,
    /// Paths that the server's entry makes inaccessible, regardless of rules and grants.
    pub closed: HiddenPaths,
    /// Process id of the supervisor.
    pub pid: u32,
    /// Returns the calls that questions list.
    pub calls: Box<CallsInProgress>,
    /// `true` if pausing stops the sandbox's programs, as in a run.
    pub is_frozen_when_paused: bool,
    /// Counters of decisions.
    pub counts: Arc<AccessCounts>,
}

/// Receivers for messages to the view and for orders to the supervisor.
pub struct FilesInbox {
    /// Messages to the view.
    pub for_view: mpsc::UnboundedReceiver<ToView>,
    /// Orders to the supervisor.
    pub orders: mpsc::UnboundedReceiver<SandboxOrder>,
}

impl ServedFiles {
    /// Creates the state, and the receivers for its messages.
    pub fn new(options: ServedFilesOptions) -> (Arc<Self>, FilesInbox) {
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
            working_folder,
            closed,
            pid,
            calls,
            is_frozen_when_paused,
            counts,
        } = options;
        let files = Self {
            permissions: Permissions::new(profile.permitted()),
            pace: RateLimiter::new(MAX_DENIALS),
            startup: StartupFiles::new(services.snapshot().home.as_str().to_owned()),
            searches: Searches::new(services.config.questions_per_minute),
            asked: AskedFolders::default(),
            reserved: watch::Sender::new(0),
            end: CancellationToken::new(),
            end_reason: OnceLock::new(),
            exited: CancellationToken::new(),
            id,
            principal,
            services,
            resolver,
            notes,
            profile,
            mounted,
            working_folder: Mutex::new(working_folder),
            closed,
            pid,
            calls,
            is_frozen_when_paused,
            counts,
            to_sandbox,
            to_view,
        };
        (Arc::new(files), FilesInbox { for_view, orders })
    }

    /// Returns the working folder of a run, or `None` if it is not mounted.
    #[must_use]
    pub fn working_folder(&self) -> Option<CanonicalPath> {
        profile::lock(&self.working_folder).clone()
    }

    /// Requests termination of the sandbox without waiting for it to exit.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Requests termination of the sandbox for this reason.
    pub fn end_with_reason(&self, why: String) {
        // Keeps the first reason.
        let _ = self.end_reason.set(why);
        self.end();
    }

    /// Returns the reason IronCurtain terminated the sandbox, if it did.
    pub fn end_reason(&self) -> Option<String> {
        self.end_reason.get().cloned()
    }

    /// Returns `true` if termination of the sandbox was requested.
    pub fn is_ending(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Completes when termination of the sandbox is requested.
    pub async fn wait_for_end(&self) {
        self.end.cancelled().await;
    }

    /// Completes when the sandbox has exited.
    pub async fn wait_for_exit(&self) {
        self.exited.cancelled().await;
    }

    /// Records that the sandbox has exited.
    pub fn mark_exited(&self) {
        self.exited.cancel();
    }

    /// Returns `true` if grants for this subject apply to the sandbox.
    pub fn may_use(&self, subject: &GrantSubject) -> bool {
        self.principal.is_covered_by(subject)
    }
}
