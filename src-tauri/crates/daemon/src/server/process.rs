//! Starts a server's process: in our sandbox, in one made by `srt`, or unsandboxed.

mod alone;
mod native;
mod plain;
mod remote;
mod remote_login;
mod srt;
mod stderr;

pub use alone::{LoneProcess, ServersBeside, start_alone, unrecorded};
pub use stderr::ServerStderr;

use super::control::{CLEANING, SupervisorControl};
use super::start_error::ServerStartError;
use crate::identity_gate::IdentityGate;
use crate::network::{ServesNetwork, Serving};
use ironcurtain_autostart::{Autostart, WatchedServer};
use ironcurtain_config::{FileView, Server};
use ironcurtain_containment::{
    Profile, RefusesProgram, ServerPrograms, Surroundings, find_program, named_program,
};
use ironcurtain_egress::Dialer;
use ironcurtain_grants::mounts::Need;
use ironcurtain_mcp::remote::RemoteHold;
use ironcurtain_mcp::remote::login::Dial;
use ironcurtain_mcp::wire::{Allowance, Input, Output};
use ironcurtain_packages::{FolderLock, PackageError, PackageIdentity};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{BoundChild, KillHandle, Mount, MountAccess};
use ironcurtain_secrets::{Filled, filled_env};
use ironcurtain_server_identity::FoundIdentity;
pub(super) use remote::Notify;
use remote::RemoteStart;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Containment of a server.
#[derive(Debug, Clone)]
pub enum Containment {
    /// Our sandbox, whose mounts follow the grants.
    Native(Box<Profile>, FileView),
    /// A sandbox made by `srt`, recreated when grants change. The directory holds its files.
    Srt(Box<Profile>, PathBuf),
    /// No sandbox: all rights of the user.
    Plain,
    /// Runs on another machine: it has no access to local files, and data sent to it leaves our control.
    Remote,
}

impl Containment {
    /// Returns `true` if the server runs in a sandbox.
    #[must_use]
    pub fn is_sandboxed(&self) -> bool {
        match self {
            Self::Native(..) | Self::Srt(..) => true,
            Self::Plain | Self::Remote => false,
        }
    }

    /// Returns `true` if the server runs on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote)
    }

    /// Returns `true` if it hides paths that would be visible otherwise.
    pub(super) fn hides_paths(&self) -> bool {
        match self {
            Self::Native(_, FileView::HostRead) | Self::Srt(..) => true,
            Self::Native(_, FileView::Roots) | Self::Plain | Self::Remote => false,
        }
    }

    /// Returns the containment with one more readable folder.
    fn showing(&self, folder: &str) -> Self {
        let mut containment = self.clone();
        match &mut containment {
            Self::Native(profile, _) | Self::Srt(profile, _) => profile.allow_read.push(folder.to_owned()),
            Self::Plain | Self::Remote => {}
        }
        containment
    }

    /// Returns the writable paths of the entry that need separate mounts.
    pub(super) fn standing(&self, around: &Surroundings) -> Vec<Need> {
        match self {
            Self::Native(profile, FileView::Roots) => around.mounted(profile),
            Self::Native(_, FileView::HostRead) | Self::Srt(..) | Self::Plain | Self::Remote => Vec::new(),
        }
    }
}

/// Parameters to start a server with.
pub(super) struct Start<'a> {
    pub(super) server: &'a Server,
    pub(super) programs: &'a ServerPrograms,
    /// Rejects programs that another server can modify.
    pub(super) refuses_program: &'a RefusesProgram,
    pub(super) around: &'a Surroundings,
    /// Network of the server, if it has one.
    pub(super) network: Option<&'a dyn ServesNetwork>,
    /// Mounts beyond the session sandbox.
    pub(super) needs: &'a [Need],
    /// Watch for autostart files. `None` if everything writable is removed with the sandbox.
    pub(super) watch: Option<Watch<'a>>,
    /// Read-only paths in folders that we do not watch.
    pub(super) closed: BTreeMap<CanonicalPath, Vec<String>>,
    /// Connection parameters of a remote server.
    pub(super) transport: Option<RemoteTransport>,
    /// Checks that data under the server's name belongs to it. `None` for a mere inspection.
    pub(super) gate: Option<&'a IdentityGate>,
}

/// Connection parameters of a remote server.
pub(super) struct RemoteTransport {
    /// Opens connections to the server.
    pub(super) dialer: Dialer,
    /// Opens the connections that renew a login.
    pub(super) dial: Dial,
    /// Notifies the user.
    pub(super) notify: Notify,
    /// Memory budget for its messages.
    pub(super) memory: Allowance,
    /// Keeps the trusted process from exiting while it is held.
    pub(super) waited_for: Option<TaskTrackerToken>,
}

impl Start<'_> {
    /// Returns the program to start.
    ///
    /// # Errors
    /// Returns [`ServerStartError`] if the program does not exist or must not be started.
    fn program(&self) -> Result<PathBuf, ServerStartError> {
        self.find(&self.server.command)
    }

    /// Admits the server, if data under its name belongs to it.
    async fn admitted(
        &self,
        package: Option<&PackageIdentity>,
    ) -> Result<Option<FoundIdentity>, ServerStartError> {
        let Some(gate) = self.gate else { return Ok(None) };
        if package.is_none() && self.server.remote.is_none() {
            // Report a program that another server can modify before anything else about it.
            self.program()?;
        }
        Ok(Some(gate.admit(self.server, package).await?))
    }

    /// Finds another program to start for the server, with the same checks.
    fn find(&self, command: &str) -> Result<PathBuf, ServerStartError> {
        let ours = &self.programs.dir;
        (self.refuses_program)(&named_program(command, ours)?)?;
        Ok(find_program(command, ours)?)
    }
}

/// Watch of a sandbox for autostart files.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) autostart: &'a Autostart,
    pub(super) watched: WatchedServer<'a>,
    /// Files that the user approved.
    pub(super) named: &'a BTreeSet<CanonicalPath>,
}

/// Running server, killed with all of its children on drop.
#[derive(Debug)]
pub struct Process {
    /// Process id of the supervisor or the server; `None` for a remote server.
    pub pid: Option<u32>,
    /// Standard input.
    pub stdin: Output,
    /// Standard output.
    pub stdout: Input,
    /// Standard error.
    pub stderr: ServerStderr,
    /// Terminates the process on drop.
    pub hold: ProcessHold,
    /// Read-only paths in each folder that the server can write.
    pub(super) closed: BTreeMap<CanonicalPath, Vec<String>>,
}

/// Handle that keeps a process alive and, where possible, changes its mounts.
#[derive(Debug)]
pub enum ProcessHold {
    /// Our sandbox, which terminates when the supervisor's control connection closes.
    Live {
        /// Control connection.
        control: Box<SupervisorControl>,
        /// Held until drop.
        _serving: Option<Serving>,
        /// Held until drop.
        _killer: Killer,
        /// Held until drop.
        package: Option<FolderLock>,
    },
    /// A sandbox with fixed mounts.
    Fixed {
        /// Held until drop.
        _hold: ironcurtain_sandbox::Hold,
        /// Held until drop.
        package: Option<FolderLock>,
    },
    /// No sandbox.
    Plain {
        /// Held until drop.
        _hold: ironcurtain_sandbox::Hold,
        /// Held until drop.
        package: Option<FolderLock>,
    },
    /// No local process.
    Remote(RemoteHold),
}

impl ProcessHold {
    /// Returns the exit status, or 128 plus the signal number. A supervisor reports its own exit status.
    pub(super) fn status(&self) -> Option<i32> {
        match self {
            Self::Live { .. } | Self::Remote(_) => None,
            Self::Fixed { _hold: hold, .. } | Self::Plain { _hold: hold, .. } => hold.status(),
        }
    }

    /// Returns why the connection to a remote server was closed.
    pub(super) fn remote_end(&self) -> Option<String> {
        match self {
            Self::Remote(hold) => hold.reason().map(str::to_owned),
            Self::Live { .. } | Self::Fixed { .. } | Self::Plain { .. } => None,
        }
    }

    /// Returns `true` if a remote server refused a request because the user must log in.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        match self {
            Self::Remote(hold) => hold.needs_login(),
            Self::Live { .. } | Self::Fixed { .. } | Self::Plain { .. } => false,
        }
    }

    /// Returns the error for the last request to a remote server that failed without a response from it.
    #[must_use]
    pub fn remote_fault(&self) -> Option<String> {
        match self {
            Self::Remote(hold) => Some(hold.fault()).filter(|fault| !fault.is_empty()),
            Self::Live { .. } | Self::Fixed { .. } | Self::Plain { .. } => None,
        }
    }

    /// Holds the lock on the package folder while the process runs.
    fn keep(&mut self, lock: FolderLock) {
        match self {
            Self::Live { package, .. } | Self::Fixed { package, .. } | Self::Plain { package, .. } => {
                *package = Some(lock);
            }
            // A remote server has no package folder.
            Self::Remote(_) => {}
        }
    }
}

/// Kills the supervisor if it has not exited well after this was dropped.
#[derive(Debug)]
pub struct Killer(KillHandle);

impl Drop for Killer {
    fn drop(&mut self) {
        // Dropping the control connection makes the supervisor exit.
        self.0.clone().kill_after(CLEANING);
    }
}

/// Starts the server, from its package if its entry names a package runner.
///
/// Secrets are read only after the server's identity is verified.
pub(super) async fn start(containment: &Containment, start: Start<'_>) -> Result<Process, ServerStartError> {
    if let Some(server) = &start.server.remote {
        start.admitted(None).await?;
        let transport = start.transport.ok_or(ServerStartError::NoTransport)?;
        let secrets = &start.programs.secrets;
        return remote::start(RemoteStart { name: &start.server.name, server, secrets, transport }).await;
    }
    let (packages, server) = (start.programs.packages.clone(), start.server.clone());
    let ready = match (tokio::task::spawn_blocking(move || packages.ready(&server)).await?, containment) {
        (Ok(ready), _) => ready,
        // Without a sandbox, a package runner has the network and caches it needs.
        (Err(PackageError::NotInstalled { .. } | PackageError::NotUnderstood(_)), Containment::Plain) => None,
        (Err(problem), _) => return Err(problem.into()),
    };
    let found = start.admitted(ready.as_ref().map(|ready| &ready.identity)).await?;
    let server = ready.as_ref().map_or(start.server, |ready| &ready.server);
    let Filled { values, mask } = filled_env(&start.programs.secrets, &server.env).await?;
    let env = values.into_iter().map(|(name, secret)| (name, secret.reveal().to_owned())).collect();
    let filled = Server { env, ..server.clone() };
    let start = Start { server: &filled, ..start };
    let mut process = match &ready {
        Some(ready) => run(&containment.showing(&ready.folder), start).await?,
        None => run(containment, start).await?,
    };
    if let Some(found) = found {
        // If this is dropped, the process is killed.
        tokio::task::spawn_blocking(move || found.still()).await??;
    }
    if let Some(ready) = ready {
        process.hold.keep(ready.lock);
    }
    process.stderr.hide(mask);
    Ok(process)
}

async fn run(containment: &Containment, start: Start<'_>) -> Result<Process, ServerStartError> {
    match containment {
        Containment::Native(profile, view) => native::start(profile, *view, start).await,
        Containment::Srt(profile, dir) => srt::start(profile, dir, start).await,
        Containment::Plain => plain::start(start).await,
        Containment::Remote => Err(ServerStartError::NoTransport),
    }
}

/// Converts a need to a mount with these paths read-only.
pub(super) fn mount(need: &Need, closed: Vec<String>) -> Mount {
    let access = if need.writable { MountAccess::ReadWrite } else { MountAccess::ReadOnly };
    let mount = Mount { named: need.named, ..Mount::new(need.path.as_str(), access).closing(closed) };
    if need.file { mount.of_file() } else { mount }
}

/// Starts a program that dies with us.
async fn bound(
    command: std::process::Command,
    hold: impl FnOnce(ironcurtain_sandbox::Hold) -> ProcessHold,
) -> Result<Process, ServerStartError> {
    let program = PathBuf::from(command.get_program());
    let started = tokio::task::spawn_blocking(move || ironcurtain_sandbox::spawn_bound(command)).await;
    let BoundChild { stdin, stdout, stderr, pid, hold: held } =
        started?.map_err(|source| ServerStartError::Spawn { program, source })?;
    process(pid, [stdin, stdout, stderr], hold(held))
}

fn process(
    pid: u32,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    hold: ProcessHold,
) -> Result<Process, ServerStartError> {
    Ok(Process {
        pid: Some(pid),
        stdin: Output::new(stdin)?,
        stdout: Input::new(stdout)?,
        stderr: ServerStderr::new(Input::new(stderr)?),
        hold,
        closed: BTreeMap::new(),
    })
}
