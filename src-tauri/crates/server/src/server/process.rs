//! Starts a server process in our own sandbox, in an `srt` sandbox, or without a sandbox.

mod native;
mod plain;
mod remote;
mod remote_login;
mod srt;
mod standalone;
mod stderr;
mod stored_logins;

pub use remote_login::login_server;
pub use standalone::{OtherServers, StandaloneProcess, start_standalone, unrecorded};
pub use stderr::ServerStderr;
pub use stored_logins::{
    LogoutResult, log_out, remove_tokens, revoke_unless_stored, revoke_unused, store_login,
};

use super::control::{CLEANUP_TIMEOUT, SupervisorControl};
use super::start_error::{ContainmentError, ServerStartError};
use crate::network::{RunningProxy, ServesNetwork};
use ironcurtain_autostart::{Autostart, WatchedServer};
use ironcurtain_config::{FileView, Server};
use ironcurtain_containment::{
    HiddenPaths, Profile, RefusesProgram, SandboxContext, ServerPrograms, find_program, named_program,
};
use ironcurtain_egress::Dialer;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_mcp::remote::RemoteGuard;
use ironcurtain_mcp::remote::login::Dial;
use ironcurtain_mcp::wire::{Allowance, Input, Output};
use ironcurtain_packages::{FolderLock, PackageError, PackageIdentity};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{KillHandle, LinkedChild, Mount, MountAccess, ServiceLink};
use ironcurtain_secrets::{FilledSettings, fill_env};
use ironcurtain_server_identity::FoundIdentity;
use ironcurtain_services::IdentityGate;
use remote::RemoteStart;
pub(super) use remote_login::Notify;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Kind of containment in which a server runs.
#[derive(Debug, Clone)]
pub enum Containment {
    /// IronCurtain's sandbox. Its mounts change with the grants while the server is running.
    Native(Box<Profile>, FileView),
    /// IronCurtain's sandbox with a view that serves the user's files and asks about each access.
    Asking(Box<Profile>),
    /// Sandbox created by `srt`, and recreated when grants change. The directory holds its configuration files.
    Srt(Box<Profile>, PathBuf),
    /// No sandbox. The server has all of the user's permissions.
    Plain,
    /// Another machine. The server has no access to local files.
    Remote,
}

impl Containment {
    /// Returns `true` if the server runs in a sandbox.
    #[must_use]
    pub fn is_sandboxed(&self) -> bool {
        match self {
            Self::Native(..) | Self::Asking(_) | Self::Srt(..) => true,
            Self::Plain | Self::Remote => false,
        }
    }

    /// Returns `true` if the server runs on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote)
    }

    /// Returns `true` if the containment hides paths that would be visible without it.
    pub(super) fn hides_paths(&self) -> bool {
        match self {
            Self::Native(_, FileView::HostRead) | Self::Srt(..) => true,
            // The view judges each access by the current policy.
            Self::Native(_, FileView::Roots) | Self::Asking(_) | Self::Plain | Self::Remote => false,
        }
    }

    /// Returns `true` if the server may access all paths that its entry requests.
    pub(super) fn is_permitted(&self, sandbox_context: &SandboxContext) -> bool {
        match self {
            Self::Native(profile, view) => sandbox_context.check_entry(profile, *view).is_ok(),
            Self::Asking(profile) => sandbox_context.check_entry(profile, FileView::Roots).is_ok(),
            Self::Srt(..) | Self::Plain | Self::Remote => true,
        }
    }

    /// Returns a copy of the containment that also makes `folder` readable.
    fn with_readable(&self, folder: &str) -> Self {
        let mut containment = self.clone();
        match &mut containment {
            Self::Native(profile, _) | Self::Asking(profile) | Self::Srt(profile, _) => {
                profile.allow_read.push(folder.to_owned());
            }
            Self::Plain | Self::Remote => {}
        }
        containment
    }

    /// Returns the paths that the server's entry makes inaccessible. Empty unless the server's files are served.
    pub(super) fn hidden_paths(&self, sandbox_context: &SandboxContext) -> HiddenPaths {
        match self {
            Self::Asking(profile) => sandbox_context.hidden_paths(profile),
            Self::Native(..) | Self::Srt(..) | Self::Plain | Self::Remote => HiddenPaths::default(),
        }
    }

    /// Returns the paths that the server's entry makes writable and that must be mounted separately.
    pub(super) fn always_writable(&self, sandbox_context: &SandboxContext) -> Vec<MountRequest> {
        match self {
            Self::Native(profile, FileView::Roots) | Self::Asking(profile) => {
                sandbox_context.writable_mounts(profile)
            }
            Self::Native(_, FileView::HostRead) | Self::Srt(..) | Self::Plain | Self::Remote => Vec::new(),
        }
    }
}

/// Options for starting a server process.
pub(super) struct StartOptions<'a> {
    pub(super) server: &'a Server,
    pub(super) programs: &'a ServerPrograms,
    /// Refuses a program that another server can modify.
    pub(super) refuses_program: &'a RefusesProgram,
    pub(super) sandbox_context: &'a SandboxContext,
    /// Network access of the server, or `None` if it has none.
    pub(super) network: Option<&'a dyn ServesNetwork>,
    /// Paths to mount in addition to the session folder.
    pub(super) mounts: &'a [MountRequest],
    /// Watch for autostart files, or `None` if no writable folder outlives the sandbox.
    pub(super) watch: Option<WatchOptions<'a>>,
    /// Read-only paths in writable folders. Used only if the folders are not watched.
    pub(super) read_only: BTreeMap<CanonicalPath, Vec<String>>,
    /// Connection parameters. Required if the server is remote.
    pub(super) transport: Option<RemoteTransport>,
    /// Refuses the server if data under its name belongs to a different program. `None` if the server is only
    /// inspected.
    pub(super) gate: Option<&'a IdentityGate>,
}

/// Resources for the connection to a remote server.
pub(super) struct RemoteTransport {
    /// Opens connections to the server.
    pub(super) dialer: Dialer,
    /// Opens the connections that renew a login.
    pub(super) dial: Dial,
    /// Notifies the user.
    pub(super) notify: Notify,
    /// Memory budget for the server's messages.
    pub(super) memory: Allowance,
    /// Token that keeps the daemon from exiting while the connection is open.
    pub(super) shutdown_token: Option<TaskTrackerToken>,
}

impl StartOptions<'_> {
    /// Returns the path of the server's program.
    ///
    /// # Errors
    /// Returns [`ServerStartError`] if the program does not exist or if another server can modify it.
    fn program(&self) -> Result<PathBuf, ServerStartError> {
        self.find(&self.server.command)
    }

    /// Verifies the server's identity. Returns `None` if there is no gate.
    async fn verify_identity(
        &self,
        package: Option<&PackageIdentity>,
    ) -> Result<Option<FoundIdentity>, ServerStartError> {
        let Some(gate) = self.gate else { return Ok(None) };
        if package.is_none() && self.server.remote.is_none() {
            // Check this first: a program that another server can modify is a more serious problem than a changed
            // identity.
            self.program()?;
        }
        Ok(Some(gate.admit(self.server, package).await?))
    }

    /// Finds a program that the server needs, and refuses a program that another server can modify.
    fn find(&self, command: &str) -> Result<PathBuf, ServerStartError> {
        let ours = &self.programs.dir;
        (self.refuses_program)(&named_program(command, ours)?)?;
        Ok(find_program(command, ours)?)
    }
}

/// Parameters for watching a sandbox for autostart files.
#[derive(Clone, Copy)]
pub(super) struct WatchOptions<'a> {
    pub(super) autostart: &'a Autostart,
    pub(super) watched: WatchedServer<'a>,
    /// Autostart files that are not quarantined, because the user approved them.
    pub(super) named: &'a BTreeSet<CanonicalPath>,
}

/// Running server. Dropping it kills the server and all of its children.
#[derive(Debug)]
pub struct Process {
    /// Process id of the supervisor or of the server, or `None` for a remote server.
    pub pid: Option<u32>,
    /// Standard input of the server.
    pub stdin: Output,
    /// Standard output of the server.
    pub stdout: Input,
    /// Standard error of the server.
    pub stderr: ServerStderr,
    /// Keeps the process running. Dropping it terminates the process.
    pub guard: ProcessGuard,
    /// Read-only paths, keyed by the writable folder that contains them.
    pub(super) read_only: BTreeMap<CanonicalPath, Vec<String>>,
    /// Connections of a sandbox that asks about each file.
    pub(super) asking: Option<FileApprovalConnections>,
}

/// Connections of a sandbox that asks about each file. Without them, every access is denied.
#[derive(Debug)]
pub(super) struct FileApprovalConnections {
    /// Connection to the view.
    pub(super) view: UnixStream,
    /// Link for services on this computer, or `None` if the sandbox has no network.
    pub(super) services: Option<ServiceLink>,
}

/// Keeps a process running and changes its mounts if the containment supports that.
#[derive(Debug)]
pub enum ProcessGuard {
    /// Process in our own sandbox.
    Native {
        /// Control connection to the supervisor. Closing it terminates the sandbox.
        control: Box<SupervisorControl>,
        /// Proxy for the sandbox's network. Dropping it stops the proxy.
        _serving: Option<RunningProxy>,
        /// Kills the supervisor if it does not exit after the drop.
        _killer: Killer,
        /// Lock on the server's package folder.
        package: Option<FolderLock>,
    },
    /// Process in an `srt` sandbox, whose mounts cannot be changed.
    Srt {
        /// Kills the process on drop.
        _hold: ironcurtain_sandbox::KillOnDrop,
        /// Lock on the server's package folder.
        package: Option<FolderLock>,
    },
    /// Process without a sandbox.
    Plain {
        /// Kills the process on drop.
        _hold: ironcurtain_sandbox::KillOnDrop,
        /// Lock on the server's package folder.
        package: Option<FolderLock>,
    },
    /// Connection to a remote server.
    Remote(RemoteGuard),
}

impl ProcessGuard {
    /// Returns the process's exit status, or 128 plus the number of the signal that killed it. Returns `None` if a
    /// supervisor reports the status instead.
    pub(super) fn status(&self) -> Option<i32> {
        match self {
            Self::Native { .. } | Self::Remote(_) => None,
            Self::Srt { _hold: guard, .. } | Self::Plain { _hold: guard, .. } => guard.status(),
        }
    }

    /// Returns the reason why the connection to a remote server was closed.
    pub(super) fn remote_end(&self) -> Option<String> {
        match self {
            Self::Remote(guard) => guard.reason().map(str::to_owned),
            Self::Native { .. } | Self::Srt { .. } | Self::Plain { .. } => None,
        }
    }

    /// Returns `true` if a remote server refused a request because the user must log in.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Remote(guard) => guard.needs_login(),
            Self::Native { .. } | Self::Srt { .. } | Self::Plain { .. } => false,
        }
    }

    /// Returns the error of the last request to a remote server that got no response.
    #[must_use]
    pub fn remote_fault(&self) -> Option<String> {
        match self {
            Self::Remote(guard) => Some(guard.fault()).filter(|fault| !fault.is_empty()),
            Self::Native { .. } | Self::Srt { .. } | Self::Plain { .. } => None,
        }
    }

    /// Stores the lock on the package folder. Dropping this handle releases the lock.
    fn store_lock(&mut self, lock: FolderLock) {
        match self {
            Self::Native { package, .. } | Self::Srt { package, .. } | Self::Plain { package, .. } => {
                *package = Some(lock);
            }
            // A remote server has no package folder.
            Self::Remote(_) => {}
        }
    }
}

/// Kills the supervisor if it is still running some time after this value was dropped.
#[derive(Debug)]
pub struct Killer(KillHandle);

impl Drop for Killer {
    fn drop(&mut self) {
        // Dropping the control connection also makes the supervisor exit.
        self.0.clone().kill_after(CLEANUP_TIMEOUT);
    }
}

/// Starts a server process. If the entry names a package runner, starts it from its installed package.
///
/// Reads secrets only after the server's identity was verified.
pub(super) async fn start(
    containment: &Containment,
    start: StartOptions<'_>,
) -> Result<Process, ServerStartError> {
    if let Some(reason) = &start.server.refused {
        return Err(ContainmentError::Managed(reason.clone()).into());
    }
    if let Some(server) = &start.server.remote {
        start.verify_identity(None).await?;
        let transport = start.transport.ok_or(ServerStartError::NoTransport)?;
        let secrets = &start.programs.secrets;
        return remote::start(RemoteStart { name: &start.server.name, server, secrets, transport }).await;
    }
    let (packages, server) = (start.programs.packages.clone(), start.server.clone());
    let ready = match (tokio::task::spawn_blocking(move || packages.verify(&server)).await?, containment) {
        (Ok(ready), _) => ready,
        // An unsandboxed package runner has the network access and caches that it needs, so let it run the package.
        (
            Err(PackageError::NotInstalled { .. } | PackageError::UnsupportedCommand(_)),
            Containment::Plain,
        ) => None,
        (Err(problem), _) => return Err(problem.into()),
    };
    let found = start.verify_identity(ready.as_ref().map(|ready| &ready.identity)).await?;
    let server = ready.as_ref().map_or(start.server, |ready| &ready.server);
    let FilledSettings { values, mask } = fill_env(&start.programs.secrets, &server.env).await?;
    let env = values.into_iter().map(|(name, secret)| (name, secret.reveal().to_owned())).collect();
    let filled = Server { env, ..server.clone() };
    let start = StartOptions { server: &filled, ..start };
    let mut process = match &ready {
        Some(ready) => run(&containment.with_readable(&ready.folder), start).await?,
        None => run(containment, start).await?,
    };
    if let Some(found) = found {
        // If this future is dropped, the process is killed.
        tokio::task::spawn_blocking(move || found.check_unchanged()).await??;
    }
    if let Some(ready) = ready {
        process.guard.store_lock(ready.lock);
    }
    process.stderr.hide(mask);
    Ok(process)
}

async fn run(containment: &Containment, start: StartOptions<'_>) -> Result<Process, ServerStartError> {
    match containment {
        Containment::Native(profile, view) => native::start(profile, Some(*view), start).await,
        Containment::Asking(profile) => native::start(profile, None, start).await,
        Containment::Srt(profile, dir) => srt::start(profile, dir, start).await,
        Containment::Plain => plain::start(start).await,
        Containment::Remote => Err(ServerStartError::NoTransport),
    }
}

/// Converts a request to a mount with `read_only` as its read-only paths.
pub(super) fn mount_for(need: &MountRequest, read_only: Vec<String>) -> Mount {
    let access = if need.writable { MountAccess::ReadWrite } else { MountAccess::ReadOnly };
    let mount = Mount {
        approved: need.is_approved_by_name,
        ..Mount::new(need.path.as_str(), access).with_read_only(read_only)
    };
    if need.is_file_only { mount.file_only() } else { mount }
}

/// Spawns a program that is killed when this process exits.
async fn spawn(
    command: std::process::Command,
    guard: impl FnOnce(ironcurtain_sandbox::KillOnDrop) -> ProcessGuard,
) -> Result<Process, ServerStartError> {
    let program = PathBuf::from(command.get_program());
    let started = tokio::task::spawn_blocking(move || ironcurtain_sandbox::spawn_linked(command)).await;
    let LinkedChild { stdin, stdout, stderr, pid, guard: held } =
        started?.map_err(|source| ServerStartError::Spawn { program, source })?;
    process(pid, [stdin, stdout, stderr], guard(held))
}

fn process(
    pid: u32,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    guard: ProcessGuard,
) -> Result<Process, ServerStartError> {
    Ok(Process {
        pid: Some(pid),
        stdin: Output::new(stdin)?,
        stdout: Input::new(stdout)?,
        stderr: ServerStderr::new(Input::new(stderr)?),
        guard,
        read_only: BTreeMap::new(),
        asking: None,
    })
}
