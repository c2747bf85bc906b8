//! Asking a server for its tools without a client, before anything of it is trusted.
//!
//! - It is started as it is configured, with what its entry opens and nothing granted, in a folder that is gone afterwards.
//!   Nobody is asked about hosts: those that are not open are refused, and told.
//! - Some do not start without the files that they work with: it sees those, changes none, and reaches no host meanwhile.
//! - It is offered everything that a client can, and given nothing of it.
//! - Time, messages, pages and tools are bounded; whatever it does ends in a list or in an error that says what it did.
//! - Names are checked: a name that does not show as itself is no name.

mod conversation;
mod fault;
mod scratch;
mod sight;
mod tools;
mod wants;

pub use fault::ServerFault;
pub use sight::{Sight, sight};
pub use tools::{ListedTool, fingerprint};
pub use wants::Wants;

use crate::identity::{IdentityChangeError, verify};
use crate::named_server::{UnknownServer, named_server};
use conversation::Conversation;
use ironcurtain_config::home::UnresolvedPath;
use ironcurtain_config::home::canonical_home;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{ConfigError, Sandbox, Server, Servers};
use ironcurtain_daemon::containment::{Profile, ServerPrograms, Surroundings, view_of};
use ironcurtain_daemon::network::{self, ServesNetwork};
use ironcurtain_daemon::packages::Packages;
use ironcurtain_daemon::protection;
use ironcurtain_daemon::server::process::{self, LoneProcess, ServersBeside};
use ironcurtain_daemon::server::{Containment, ServerStartError};
use ironcurtain_egress::RuleError;
use ironcurtain_grants::StandingGrant;
use ironcurtain_grants::StoreError;
use ironcurtain_secrets::SecretStore;
use ironcurtain_visible as visible;
use scratch::Scratch;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wants::TrialNetwork;

/// The settings for asking a server for its tools.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The directories of IronCurtain.
    pub home: Home,
    /// The directory that has `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub programs: PathBuf,
    /// A sandbox may be made by uid 0.
    pub allow_root: bool,
    /// The time that the server may take for everything.
    pub patience: Duration,
    /// The secrets that its entry may name.
    pub secrets: SecretStore,
}

/// Why there is no list of tools.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// Our directories cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration is refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The home directory, or a folder of ours, cannot be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
    /// The grants cannot be read, by which another server may change the program.
    #[error(transparent)]
    Grants(#[from] StoreError),
    /// It is another program than what is kept under its name belongs to.
    #[error(transparent)]
    Identity(#[from] Box<IdentityChangeError>),
    /// A host in its entry is not understood.
    #[error(transparent)]
    Hosts(#[from] RuleError),
    /// There is no such server.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// Its folder cannot be made.
    #[error("a folder for the server cannot be made: {0}")]
    Scratch(#[from] io::Error),
    /// It did not start.
    #[error("the server `{server}` cannot be started: {reason}")]
    NotStarted {
        /// Its name.
        server: String,
        /// Why.
        reason: Box<ServerStartError>,
    },
    /// It did not get to the end of its list in time.
    #[error("the server `{server}` did not list its tools within {seconds} s{said}")]
    Slow {
        /// Its name.
        server: String,
        /// The bound.
        seconds: u64,
        /// The last of its standard error.
        said: String,
    },
    /// A remote server did not answer.
    #[error("{0}")]
    Unanswered(String),
    /// It did something that a server does not do.
    #[error("the server `{server}` {fault}{said}")]
    Misbehaved {
        /// Its name.
        server: String,
        /// The fault.
        fault: ServerFault,
        /// The last of its standard error.
        said: String,
    },
}

/// A look at a server.
#[derive(Debug)]
pub struct Look {
    /// The tools that it lists, or why there is no list.
    pub listed: Result<Vec<ListedTool>, InspectError>,
    /// The things that it reached for and did not get.
    pub wants: Wants,
}

/// Starts a configured server, with the secrets that its entry names, and lists its tools.
///
/// # Errors
/// [`InspectError`], when it cannot be started. The server is killed in any case.
pub async fn inspect(inspection: &Inspection, name: &str) -> Result<Look, InspectError> {
    inspection.home.prepare()?;
    let servers = Servers::load(&inspection.home)?;
    let server = named_server(&servers, name)?;
    verified(inspection, server).await?.map_err(Box::new)?;
    inspect_server(inspection, &servers, server).await
}

/// Checks that what is kept under the name of a server is its own.
async fn verified(
    inspection: &Inspection,
    server: &Server,
) -> Result<Result<(), IdentityChangeError>, InspectError> {
    let (home, ours, server) = (inspection.home.clone(), inspection.programs.clone(), server.clone());
    Ok(tokio::task::spawn_blocking(move || verify(&home, &ours, &server)).await.map_err(io::Error::other)?)
}

/// Starts one of these servers without the user's secrets, and lists its tools: for one that they have not accepted yet, which
/// may not be written down.
///
/// # Errors
/// As [`inspect`].
pub async fn inspect_without_secrets(
    inspection: &Inspection,
    servers: &Servers,
    name: &str,
) -> Result<Look, InspectError> {
    inspection.home.prepare()?;
    let mut server = named_server(servers, name)?.without_secrets();
    if verified(inspection, &server).await?.is_err() {
        // The folder is another program's.
        server = server.without_folder(&inspection.home.server_data(name));
    }
    inspect_server(inspection, servers, &server).await
}

/// A server that was started by itself, and what it was started with.
struct StartedAlone {
    lone: LoneProcess,
    scratch: Scratch,
    network: TrialNetwork,
}

async fn start_by_itself(
    inspection: &Inspection,
    servers: &Servers,
    server: &Server,
) -> Result<StartedAlone, InspectError> {
    let person = canonical_home(&inspection.home)?;
    let scratch = Scratch::new(&inspection.home.sessions())?;
    let programs = ServerPrograms {
        dir: inspection.programs.clone(),
        allow_root: inspection.allow_root,
        packages: Packages::of(&inspection.home),
        secrets: inspection.secrets.clone(),
    };
    let protected = protection(&inspection.home, &person)?;
    let around = Surroundings::new(&inspection.home, &person, &protected, scratch.folder())?;
    let containment = containment(server, &around);
    let settings = server.sandbox.settings().and_then(|settings| settings.network.as_ref());
    let settings = settings.filter(|_| server.works_with.is_empty());
    let rules = settings.map(network::rules).transpose()?.unwrap_or_default();
    let network = TrialNetwork::new(&server.name, rules);
    let served: Option<&dyn ServesNetwork> = containment.is_sandboxed().then_some(&network);
    let grants = StandingGrant::on_disk(&inspection.home.database())?;
    let beside = (&inspection.home, ServersBeside { servers: servers.clone(), grants });
    let started = process::start_alone(&containment, server, (&programs, &around), served, beside);
    match tokio::time::timeout(inspection.patience, started).await {
        Ok(Ok(lone)) => Ok(StartedAlone { lone, scratch, network }),
        Ok(Err(reason)) => {
            let reason = Box::new(reason);
            Err(InspectError::NotStarted { server: server.name.clone(), reason })
        }
        Err(_) => Err(slow(inspection, &server.name, String::new())),
    }
}

/// Starts a server by this entry, beside others that may run meanwhile, and lists its tools.
///
/// # Errors
/// [`InspectError`], when it cannot be started. The server is killed in any case.
pub(crate) async fn inspect_server(
    inspection: &Inspection,
    servers: &Servers,
    server: &Server,
) -> Result<Look, InspectError> {
    let StartedAlone { lone, scratch, network } = start_by_itself(inspection, servers, server).await?;
    let LoneProcess { process, watch } = lone;
    // One that runs elsewhere is told of no folder here.
    let folder = server.remote.is_none().then_some(scratch.folder());
    let mut conversation = Conversation::new(process, folder);
    let listed = tokio::time::timeout(inspection.patience, tools::list(&mut conversation)).await;
    let said = conversation.end().await;
    let left = watch.map(|watch| watch.finish()).unwrap_or_default();
    let wants = Wants { hosts: network.refused(), files: wants::files(&said), left };
    let said = hidden(server, &inspection.home.person, &said).unwrap_or_default() + &said;
    let listed = match listed {
        Ok(Ok(tools)) => Ok(tools),
        Ok(Err(ServerFault::Unanswered(why))) => Err(InspectError::Unanswered(why)),
        Ok(Err(fault)) => Err(InspectError::Misbehaved { server: server.name.clone(), fault, said }),
        Err(_) => Err(slow(inspection, &server.name, said)),
    };
    Ok(Look { listed, wants })
}

/// A hint, where a server complains about a file of its arguments that its sandbox does not show it.
fn hidden(server: &Server, person: &Path, said: &str) -> Option<String> {
    let shown = &server.sandbox.settings()?.filesystem.allow_read;
    let shown = shown.iter().chain(&server.works_with).map(|path| match path.strip_prefix("~/") {
        Some(rest) => person.join(rest),
        None => PathBuf::from(path),
    });
    let shown: Vec<PathBuf> = shown.collect();
    let is_hidden = |path: &Path| {
        path.is_absolute() && path.exists() && !shown.iter().any(|shown| path.starts_with(shown))
    };
    let file = server.args.iter().find(|word| said.contains(word.as_str()) && is_hidden(Path::new(word)))?;
    Some(format!(
        "; its sandbox may hide `{}` from it: name its folder in `sandbox.filesystem.allowRead` in `mcp-servers.json`",
        visible::line(file)
    ))
}

fn slow(inspection: &Inspection, name: &str, said: String) -> InspectError {
    InspectError::Slow { server: name.to_owned(), seconds: inspection.patience.as_secs(), said }
}

/// In a sandbox of ours, whatever runs it later. One that opted out of the sandbox stays as it is.
fn containment(server: &Server, around: &Surroundings) -> Containment {
    if server.remote.is_some() {
        return Containment::Remote;
    }
    let Sandbox::Sandboxed(settings) = &server.sandbox else { return Containment::Plain };
    let mut profile = Profile::new(settings, around.session_dir.as_path(), around.home.as_path());
    profile.allow_read.extend_from_slice(&server.works_with);
    Containment::Native(Box::new(profile), view_of(settings))
}
