//! Starting a server's process: in a sandbox of ours, in one that `srt` makes, or plain.

mod alone;
mod native;
mod plain;
mod remote;
mod remote_login;
mod srt;
mod stderr;

pub use alone::{LoneProcess, ServersBeside, start_alone};
pub use stderr::ServerStderr;

use super::control::{CLEANING, SupervisorControl};
use super::start_error::ServerStartError;
use crate::autostart::{Autostart, WatchedServer};
use crate::containment::{
    Profile, RefusesProgram, ServerPrograms, Surroundings, find_program, named_program,
};
use crate::network::{ServesNetwork, Serving};
use crate::packages::{FolderLock, PackageError, PackageIdentity};
use crate::server_identity::{FoundIdentity, IdentityGate};
use ironcurtain_config::{FileView, Server};
use ironcurtain_egress::Dialer;
use ironcurtain_grants::mounts::Need;
use ironcurtain_mcp::remote::RemoteHold;
use ironcurtain_mcp::wire::{Allowance, Input, Output};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{BoundChild, KillHandle, Mount, MountAccess};
use ironcurtain_secrets::{Filled, filled_env};
use remote::RemoteStart;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The containment that a server runs in.
#[derive(Debug, Clone)]
pub enum Containment {
    /// In a sandbox of ours, which grows and shrinks with grants.
    Native(Box<Profile>, FileView),
    /// In one that `srt` makes, which is made anew when grants change. The directory is for its files.
    Srt(Box<Profile>, PathBuf),
    /// With all rights of the person.
    Plain,
    /// Elsewhere: it sees no file here, and what it is sent is out of our hands.
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

    /// Returns `true` if the server runs elsewhere.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote)
    }

    /// Returns `true` if it hides paths that it would show otherwise.
    pub(super) fn hides_paths(&self) -> bool {
        match self {
            Self::Native(_, FileView::HostRead) | Self::Srt(..) => true,
            Self::Native(_, FileView::Roots) | Self::Plain | Self::Remote => false,
        }
    }

    /// The same, with one more folder to read.
    fn showing(&self, folder: &str) -> Self {
        let mut containment = self.clone();
        match &mut containment {
            Self::Native(profile, _) | Self::Srt(profile, _) => profile.allow_read.push(folder.to_owned()),
            Self::Plain | Self::Remote => {}
        }
        containment
    }

    /// Writable paths of its entry that its view does not show by itself.
    pub(super) fn standing(&self, around: &Surroundings) -> Vec<Need> {
        match self {
            Self::Native(profile, FileView::Roots) => around.mounted(profile),
            Self::Native(_, FileView::HostRead) | Self::Srt(..) | Self::Plain | Self::Remote => Vec::new(),
        }
    }
}

/// Everything that a server is started with.
pub(super) struct Start<'a> {
    pub(super) server: &'a Server,
    pub(super) programs: &'a ServerPrograms,
    /// Refuses programs that another server may change.
    pub(super) refuses_program: &'a RefusesProgram,
    pub(super) around: &'a Surroundings,
    /// The network that it reaches; nothing when it reaches none.
    pub(super) network: Option<&'a dyn ServesNetwork>,
    /// Everything it is to see beside the session sandbox.
    pub(super) needs: &'a [Need],
    /// Who watches its sandbox for files that run later; nobody where all that it can write to goes with it.
    pub(super) watch: Option<Watch<'a>>,
    /// The paths that are closed in folders that nobody of ours watches.
    pub(super) closed: BTreeMap<CanonicalPath, Vec<String>>,
    /// The way to it, where it runs elsewhere.
    pub(super) way: Option<RemoteWay>,
    /// Checks that what is under its name is its own; nothing where it is only looked at.
    pub(super) gate: Option<&'a IdentityGate>,
}

/// The way to a server that runs elsewhere.
pub(super) struct RemoteWay {
    /// Opens its connections.
    pub(super) dialer: Dialer,
    /// The memory for what it says.
    pub(super) memory: Allowance,
    /// Until it is dropped, the trusted process does not end.
    pub(super) waited_for: Option<TaskTrackerToken>,
}

impl Start<'_> {
    /// The program that it is started as.
    ///
    /// # Errors
    /// [`ServerStartError`], when there is none or it must not be started.
    fn program(&self) -> Result<PathBuf, ServerStartError> {
        self.find(&self.server.command)
    }

    /// Admits it, if what is under its name is its own.
    async fn admitted(
        &self,
        package: Option<&PackageIdentity>,
    ) -> Result<Option<FoundIdentity>, ServerStartError> {
        let Some(gate) = self.gate else { return Ok(None) };
        if package.is_none() && self.server.remote.is_none() {
            // One that another server may change is named as that, whatever it is now.
            self.program()?;
        }
        Ok(Some(gate.admit(self.server, package).await?))
    }

    /// The same of another program that is started for it.
    fn find(&self, command: &str) -> Result<PathBuf, ServerStartError> {
        let ours = &self.programs.dir;
        (self.refuses_program)(&named_program(command, ours)?)?;
        Ok(find_program(command, ours)?)
    }
}

/// The watch over a sandbox, for files that run later.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) autostart: &'a Autostart,
    pub(super) watched: WatchedServer<'a>,
    /// Files that answers of the person named.
    pub(super) named: &'a BTreeSet<CanonicalPath>,
}

/// A running server. Dropped, it is killed with everything it started.
#[derive(Debug)]
pub struct Process {
    /// The process id of its supervisor, or its own; one that runs elsewhere has none.
    pub pid: Option<u32>,
    /// Its standard input.
    pub stdin: Output,
    /// Its standard output.
    pub stdout: Input,
    /// Its standard error.
    pub stderr: ServerStderr,
    /// Ends it on drop.
    pub hold: ProcessHold,
    /// The paths that are closed in each folder that it may write to.
    pub(super) closed: BTreeMap<CanonicalPath, Vec<String>>,
}

/// The handle that keeps a process alive, and changes what it sees where that is possible.
#[derive(Debug)]
pub enum ProcessHold {
    /// The supervisor's control conversation; its end is the sandbox's end.
    Live {
        /// For changing what it sees.
        control: Box<SupervisorControl>,
        /// Kept for its drop.
        _serving: Option<Serving>,
        /// Kept for its drop.
        _killer: Killer,
        /// Kept for its drop.
        package: Option<FolderLock>,
    },
    /// A sandbox that shows what it was made with.
    Fixed {
        /// Kept for its drop.
        _hold: ironcurtain_sandbox::Hold,
        /// Kept for its drop.
        package: Option<FolderLock>,
    },
    /// No sandbox.
    Plain {
        /// Kept for its drop.
        _hold: ironcurtain_sandbox::Hold,
        /// Kept for its drop.
        package: Option<FolderLock>,
    },
    /// No process of ours.
    Remote(RemoteHold),
}

impl ProcessHold {
    /// The exit status of one that has ended, 128 and the signal where one ended it. A supervisor tells by itself.
    pub(super) fn status(&self) -> Option<i32> {
        match self {
            Self::Live { .. } | Self::Remote(_) => None,
            Self::Fixed { _hold: hold, .. } | Self::Plain { _hold: hold, .. } => hold.status(),
        }
    }

    /// Why the conversation with a remote server is over.
    pub(super) fn remote_end(&self) -> Option<String> {
        match self {
            Self::Remote(hold) => hold.reason().map(str::to_owned),
            Self::Live { .. } | Self::Fixed { .. } | Self::Plain { .. } => None,
        }
    }

    /// The words with which a remote server's last request was refused by us, who have no answer from it.
    #[must_use]
    pub fn remote_fault(&self) -> Option<String> {
        match self {
            Self::Remote(hold) => Some(hold.fault()).filter(|fault| !fault.is_empty()),
            Self::Live { .. } | Self::Fixed { .. } | Self::Plain { .. } => None,
        }
    }

    /// Keeps the folder it was started from there for as long as it runs.
    fn keep(&mut self, lock: FolderLock) {
        match self {
            Self::Live { package, .. } | Self::Fixed { package, .. } | Self::Plain { package, .. } => {
                *package = Some(lock);
            }
            // It is started from no folder.
            Self::Remote(_) => {}
        }
    }
}

/// Kills the supervisor if it has not ended by itself well after this was dropped.
#[derive(Debug)]
pub struct Killer(KillHandle);

impl Drop for Killer {
    fn drop(&mut self) {
        // The control conversation ends with this, and the supervisor by that.
        self.0.clone().kill_after(CLEANING);
    }
}

/// Starts the server, from its package where its entry names a package runner.
///
/// No secret is read before the server is known to be the one that it was given to.
pub(super) async fn start(containment: &Containment, start: Start<'_>) -> Result<Process, ServerStartError> {
    if let Some(server) = &start.server.remote {
        start.admitted(None).await?;
        let RemoteWay { dialer, memory, waited_for } = start.way.ok_or(ServerStartError::NoWay)?;
        return remote::start(RemoteStart {
            server,
            secrets: &start.programs.secrets,
            dialer,
            memory: &memory,
            waited_for,
        })
        .await;
    }
    let (packages, server) = (start.programs.packages.clone(), start.server.clone());
    let ready = match (tokio::task::spawn_blocking(move || packages.ready(&server)).await?, containment) {
        (Ok(ready), _) => ready,
        // It has the network and the caches that a package runner wants.
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
        // Dropped, the process is killed.
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
        Containment::Remote => Err(ServerStartError::NoWay),
    }
}

/// As the sandbox wants it, with these paths closed in it.
pub(super) fn mount(need: &Need, closed: Vec<String>) -> Mount {
    let access = if need.writable { MountAccess::ReadWrite } else { MountAccess::ReadOnly };
    let mount = Mount { named: need.named, ..Mount::new(need.path.as_str(), access).closing(closed) };
    if need.file { mount.of_file() } else { mount }
}

/// Starts a program that ends with us.
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
