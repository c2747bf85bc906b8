//! Starts a server before it is trusted, without a client, to list its tools.
//!
//! - The server gets the access that its entry allows and a temporary folder, but no grants. Connections to other
//!   hosts are refused and reported, without asking the user.
//! - Some servers do not start without the files that they work with. Such a server can read but not change these
//!   files, and has no network access.
//! - Declares all client capabilities, but declines requests that use them.
//! - Time, message size, and the number of pages and tools are limited, so every inspection ends with a list or an
//!   error.
//! - A tool name that cannot be displayed unambiguously is an error.

mod conversation;
mod fault;
mod folder_listing;
mod refused_access;
mod scratch;
mod tools;

pub use fault::ServerFault;
pub use folder_listing::{FolderListing, list_folder};
pub use refused_access::RefusedAccess;
pub use tools::ListedTool;
pub(crate) use tools::fingerprint;

use crate::identity::{IdentityChangeError, verify};
use crate::named_server::{UnknownServer, named_server};
use conversation::Conversation;
use ironcurtain_config::home::{Home, HomeError, UnresolvedPath, canonical_home};
use ironcurtain_config::{ConfigError, ManagedPolicy, Sandbox, Server, ServerAccess, Servers, SnapshotError};
use ironcurtain_containment::{Profile, SandboxContext, ServerPrograms, view_of};
use ironcurtain_egress::RuleError;
use ironcurtain_grants::{StandingGrant, StoreError};
use ironcurtain_packages::Packages;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_secrets::SecretStore;
use ironcurtain_server::network::{self, ServesNetwork};
use ironcurtain_server::process::{self, OtherServers, StandaloneProcess};
use ironcurtain_server::{Containment, ServerStartError};
use ironcurtain_visible as visible;
use refused_access::TrialNetwork;
use scratch::Scratch;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Settings for inspecting servers.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// IronCurtain's directories.
    pub home: Home,
    /// Directory that contains `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub programs: PathBuf,
    /// `true` to create sandboxes even as root.
    pub allow_root: bool,
    /// Maximum time for starting the server, and for listing its tools.
    pub timeout: Duration,
    /// Store of the secrets that the entry can reference.
    pub secrets: SecretStore,
}

/// Error from listing a server's tools.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// IronCurtain's directories could not be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The home directory or one of IronCurtain's directories could not be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
    /// The organization's settings or rules are invalid.
    #[error("{0}")]
    Managed(#[from] SnapshotError),
    /// The grants could not be read. They may allow another server to change the program.
    #[error(transparent)]
    Grants(#[from] StoreError),
    /// The state under the server's name was stored for a different program.
    #[error(transparent)]
    Identity(#[from] Box<IdentityChangeError>),
    /// A host in the server's entry is invalid.
    #[error(transparent)]
    Hosts(#[from] RuleError),
    /// The server does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The temporary folder could not be created.
    #[error("failed to create a folder for the server: {0}")]
    Scratch(#[from] io::Error),
    /// The server did not start.
    #[error("failed to start the server `{server}`: {reason}")]
    NotStarted {
        /// Name of the server.
        server: String,
        /// Reason for the failure.
        reason: Box<ServerStartError>,
    },
    /// The server did not list all of its tools in time.
    #[error("the server `{server}` did not list its tools within {seconds} s{stderr}")]
    Timeout {
        /// Name of the server.
        server: String,
        /// Maximum time, in seconds.
        seconds: u64,
        /// Last lines of the server's standard error.
        stderr: String,
    },
    /// A remote server did not respond.
    #[error("{0}")]
    NoResponse(String),
    /// A remote server requires a login.
    #[error("{0}")]
    NeedsLogin(String),
    /// The server violated the protocol or exceeded a limit.
    #[error("the server `{server}` {fault}{stderr}")]
    Fault {
        /// Name of the server.
        server: String,
        /// Violation or exceeded limit.
        fault: ServerFault,
        /// Last lines of the server's standard error.
        stderr: String,
    },
}

/// Result of inspecting a server.
#[derive(Debug)]
pub struct InspectionResult {
    /// Tools that the server lists, or the reason they could not be listed.
    pub listed: Result<Vec<ListedTool>, InspectError>,
    /// Hosts and files to which the sandbox refused access.
    pub refused_access: RefusedAccess,
}

/// Starts a configured server with its secrets, lists its tools and kills it.
///
/// # Errors
/// Returns an [`InspectError`] if it cannot be started.
pub async fn inspect(inspection: &Inspection, name: &str) -> Result<InspectionResult, InspectError> {
    inspection.home.prepare()?;
    let servers = Servers::load(&inspection.home)?;
    let server = named_server(&servers, name)?;
    check_identity(inspection, server).await?.map_err(Box::new)?;
    inspect_server(inspection, &servers, server).await
}

/// Returns an error if the state under the server's name was stored for a different program.
async fn check_identity(
    inspection: &Inspection,
    server: &Server,
) -> Result<Result<(), IdentityChangeError>, InspectError> {
    let (home, ours, server) = (inspection.home.clone(), inspection.programs.clone(), server.clone());
    Ok(tokio::task::spawn_blocking(move || verify(&home, &ours, &server)).await.map_err(io::Error::other)?)
}

/// Starts one of `servers` without the user's secrets and lists its tools.
///
/// Used for a server that the user has not accepted yet. The server need not be configured.
///
/// # Errors
/// Returns an error in the same cases as [`inspect`].
pub async fn inspect_without_secrets(
    inspection: &Inspection,
    servers: &Servers,
    name: &str,
) -> Result<InspectionResult, InspectError> {
    inspection.home.prepare()?;
    let mut server = named_server(servers, name)?.without_secrets();
    if check_identity(inspection, &server).await?.is_err() {
        // Hides the data folder, because it belongs to a different program.
        server = server.without_folder(&inspection.home.server_data(name));
    }
    inspect_server(inspection, servers, &server).await
}

/// A server that runs outside any session, and the resources it uses.
struct StandaloneServer {
    process: StandaloneProcess,
    scratch: Scratch,
    network: TrialNetwork,
}

async fn start_standalone(
    inspection: &Inspection,
    servers: &Servers,
    server: &Server,
) -> Result<StandaloneServer, InspectError> {
    let user_home = canonical_home(&inspection.home)?;
    let scratch = Scratch::new(&inspection.home.sessions())?;
    let programs = ServerPrograms {
        dir: inspection.programs.clone(),
        allow_root: inspection.allow_root,
        packages: Packages::in_home(&inspection.home),
        secrets: inspection.secrets.clone(),
    };
    let protected = Arc::new(ManagedPolicy::protection(&inspection.home, &user_home)?);
    let around = SandboxContext::new(&inspection.home, &user_home, &protected, scratch.folder())?;
    let containment = containment(server, &around);
    let server = &with_scratch_home(&around.session_dir, server);
    let settings = server.sandbox.settings().and_then(|settings| settings.network.as_ref());
    let settings = settings.filter(|_| server.works_with.is_empty());
    let rules = settings.map(network::rules).transpose()?.unwrap_or_default();
    let network = TrialNetwork::new(&server.name, rules);
    let proxy: Option<&dyn ServesNetwork> = containment.is_sandboxed().then_some(&network);
    let grants = StandingGrant::on_disk(&inspection.home.database())?;
    let beside = (&inspection.home, OtherServers { servers: servers.clone(), grants });
    let started = process::start_standalone(&containment, server, (&programs, &around), proxy, beside);
    match tokio::time::timeout(inspection.timeout, started).await {
        Ok(Ok(process)) => Ok(StandaloneServer { process, scratch, network }),
        Ok(Err(reason)) => {
            let reason = Box::new(reason);
            Err(InspectError::NotStarted { server: server.name.clone(), reason })
        }
        Err(_) => Err(timeout_error(inspection, &server.name, String::new())),
    }
}

/// Starts `server`, lists its tools and kills it. `servers` contains all servers that may be running.
///
/// # Errors
/// Returns an [`InspectError`] if it cannot be started.
pub(crate) async fn inspect_server(
    inspection: &Inspection,
    servers: &Servers,
    server: &Server,
) -> Result<InspectionResult, InspectError> {
    let StandaloneServer { process, scratch, network } =
        start_standalone(inspection, servers, server).await?;
    let StandaloneProcess { process, watch } = process;
    // Local folder names are not sent to a remote server.
    let folder = server.remote.is_none().then_some(scratch.folder());
    let mut conversation = Conversation::new(process, folder);
    let listed = tokio::time::timeout(inspection.timeout, tools::list(&mut conversation)).await;
    let stderr = conversation.kill().await;
    let autostart_notices = watch.map(|watch| watch.finish()).unwrap_or_default();
    let refused_access =
        RefusedAccess { hosts: network.refused(), files: refused_access::files(&stderr), autostart_notices };
    let hint = hidden_file_hint(server, &inspection.home.user_home, &stderr).unwrap_or_default();
    let stderr = network.failure_note() + &hint + &stderr;
    let listed = match listed {
        Ok(Ok(tools)) => Ok(tools),
        Ok(Err(ServerFault::NoResponse(why))) => Err(InspectError::NoResponse(why)),
        Ok(Err(ServerFault::NeedsLogin(why))) => Err(InspectError::NeedsLogin(why)),
        Ok(Err(fault)) => Err(InspectError::Fault { server: server.name.clone(), fault, stderr }),
        Err(_) => Err(timeout_error(inspection, &server.name, stderr)),
    };
    Ok(InspectionResult { listed, refused_access })
}

/// Returns a hint if the server's error output mentions an argument that is a file hidden by its sandbox.
fn hidden_file_hint(server: &Server, user_home: &Path, stderr: &str) -> Option<String> {
    let visible_paths = &server.sandbox.settings()?.filesystem.allow_read;
    let visible_paths =
        visible_paths.iter().chain(&server.works_with).map(|path| match path.strip_prefix("~/") {
            Some(rest) => user_home.join(rest),
            None => PathBuf::from(path),
        });
    let visible_paths: Vec<PathBuf> = visible_paths.collect();
    let is_hidden = |path: &Path| {
        path.is_absolute() && path.exists() && !visible_paths.iter().any(|visible| path.starts_with(visible))
    };
    let file =
        server.args.iter().find(|word| stderr.contains(word.as_str()) && is_hidden(Path::new(word)))?;
    Some(format!(
        "; its sandbox may hide `{}`; to allow it, add its folder to `sandbox.filesystem.allowRead` in `mcp-servers.json`",
        visible::line(file)
    ))
}

/// Returns a copy of the server. If it asks for access to files, its home directory is the temporary folder.
fn with_scratch_home(scratch: &CanonicalPath, server: &Server) -> Server {
    let mut server = server.clone();
    if server.access == ServerAccess::Ask {
        server.env.entry("HOME".to_owned()).or_insert_with(|| scratch.as_str().to_owned());
    }
    server
}

fn timeout_error(inspection: &Inspection, name: &str, stderr: String) -> InspectError {
    InspectError::Timeout { server: name.to_owned(), seconds: inspection.timeout.as_secs(), stderr }
}

/// Returns the server's sandbox, or no containment if its entry opts out.
fn containment(server: &Server, around: &SandboxContext) -> Containment {
    if server.remote.is_some() {
        return Containment::Remote;
    }
    let Sandbox::Sandboxed(settings) = &server.sandbox else { return Containment::Plain };
    let mut profile = Profile::new(settings, around.session_dir.as_path(), around.home.as_path());
    profile.allow_read.extend_from_slice(&server.works_with);
    // The user is not asked during an inspection, so a server that asks sees no files.
    Containment::Native(Box::new(profile), view_of(settings))
}
