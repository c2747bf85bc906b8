//! Builds the page's description of servers with their access and tools.

use super::changed_tools::{ChangedToolRow, changed_tool_rows};
use super::identity::SuspendedRow;
use super::server_reach::reaches;
use ironcurtain_admin::ServerChangeError;
use ironcurtain_admin::catalog::{Catalog, CatalogError, KnownServer, Source};
use ironcurtain_admin::entry_permissions::{EntryPermission, entry_permissions};
use ironcurtain_admin::identity::{IdentityChangeError, suspended};
use ironcurtain_admin::limits::{Limit, ServerLimit, limits};
use ironcurtain_admin::login::{LoginState, LoginStates};
use ironcurtain_admin::removal::{RemovedServer, removed_servers};
use ironcurtain_admin::tool_pins::ToolPinError;
use ironcurtain_config::ConfigError;
use ironcurtain_config::RemoteServer;
use ironcurtain_config::Server;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicySnapshot, SnapshotError};
use ironcurtain_packages::{PackageState, Packages, RunnerCommand};
use ironcurtain_policy::{Annotations, Role, ToolAnnotation};
use ironcurtain_protocol::SessionView;
use ironcurtain_secrets::LoginRecord;
use ironcurtain_visible as visible;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

#[derive(Debug, Serialize)]
pub(super) struct ServersView {
    servers: Vec<ServerRow>,
    catalog: Vec<CatalogRow>,
    /// Removed servers that can be restored.
    removed: Vec<RemovedRow>,
    file: String,
}

/// Removed server, as the page shows it.
#[derive(Debug, Serialize)]
struct RemovedRow {
    name: String,
    entry: String,
}

/// Host or folder that a server can always access.
#[derive(Debug, Serialize)]
struct OpeningRow {
    opening: EntryPermission,
    words: String,
}

/// Resource limit of a server, as the page shows it.
#[derive(Debug, Serialize)]
struct LimitRow {
    limit: Limit,
    name: &'static str,
    unit: &'static str,
    own: Option<u64>,
    default: Option<u64>,
}

/// Reason the servers cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServersError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Removed(#[from] ServerChangeError),
    #[error(transparent)]
    Suspended(#[from] IdentityChangeError),
    #[error(transparent)]
    Tools(#[from] ToolPinError),
}

#[derive(Debug, Serialize)]
struct ServerRow {
    name: String,
    suspended: Option<SuspendedRow>,
    description: Option<String>,
    command: String,
    sandboxed: bool,
    /// `true` if the server is remote.
    remote: bool,
    reaches: Vec<String>,
    /// Network access of a sandboxed server, or `None` if it has none.
    network: Option<NetworkRow>,
    tools: Vec<ToolRow>,
    /// Tools that the server changed or added.
    changed_tools: Vec<ChangedToolRow>,
    version: Option<String>,
    problem: Option<String>,
    can_install: bool,
    live: Vec<LiveServer>,
    /// Hosts and folders that the server can always access, most dangerous first.
    openings: Vec<OpeningRow>,
    limits: Vec<LimitRow>,
    /// Names of the secrets that the server's entry uses.
    secrets: Vec<String>,
    /// `true` if the user can log in to the server.
    can_log_in: bool,
    /// The user's login, if any.
    login: Option<LoginRow>,
    /// `true` if the server has refused a request because the user must log in.
    login_required: bool,
}

/// Login to a remote server.
#[derive(Debug, Serialize)]
struct LoginRow {
    issuer: String,
    scopes: Vec<String>,
    has_ended: bool,
}

/// Hosts that a server can reach, and how all other hosts are handled.
#[derive(Debug, Serialize)]
struct NetworkRow {
    hosts: Vec<String>,
    asks: bool,
}

/// Server process in an active session.
#[derive(Debug, Serialize)]
struct LiveServer {
    session: String,
    client: String,
    started_ms: u64,
    restarts: u64,
    /// Reason the process is not running, or `None` while it is running.
    trouble: Option<String>,
}

#[derive(Debug, Serialize)]
struct ToolRow {
    name: String,
    means: String,
}

#[derive(Debug, Serialize)]
struct CatalogRow {
    id: String,
    title: String,
    about: String,
    why: String,
    from: String,
    needs: Option<String>,
    settings: BTreeMap<String, String>,
    package: bool,
}

impl ServersView {
    pub(super) fn read(home: &Home, sessions: &[SessionView]) -> Result<Self, ServersError> {
        let servers = Servers::load(home)?;
        let snapshot = PolicySnapshot::load(home, &servers)?;
        let packages = Packages::in_home(home);
        let logins = LoginStates::load(home);
        let mut suspended = suspended(home)?;
        let row = |server: &Server| {
            let changed_tools = changed_tool_rows(home, server.identity())?;
            let at = suspended.iter().position(|one| one.name == server.name);
            let suspended = at.map(|at| SuspendedRow::new(home, &suspended.swap_remove(at)));
            let live = sessions.iter().filter(|session| session.server == server.name).map(live);
            let login = logins.record_of(server).map(logged_in);
            let row = row(server, &snapshot.annotations, packages.state(server), live.collect());
            let login_required = logins.state_of(server) == Some(LoginState::Required);
            Ok::<_, ToolPinError>(ServerRow { suspended, changed_tools, login, login_required, ..row })
        };
        Ok(Self {
            servers: servers.iter().map(row).collect::<Result<_, _>>()?,
            catalog: Catalog::shipped()?.iter().map(catalog_row).collect(),
            removed: removed_servers(home)?.into_iter().map(removed).collect(),
            file: home.config.join("mcp-servers.json").display().to_string(),
        })
    }
}

fn live(session: &SessionView) -> LiveServer {
    LiveServer {
        session: session.id.clone(),
        client: session.client.name.clone(),
        started_ms: session.started_ms,
        restarts: session.restarts,
        trouble: session.trouble.clone(),
    }
}

fn row(
    server: &Server,
    annotations: &Annotations,
    package: PackageState,
    live: Vec<LiveServer>,
) -> ServerRow {
    let (version, problem) = match package {
        PackageState::NoPackage => (None, None),
        PackageState::Installed { version, .. } => (Some(version), None),
        PackageState::NotReady(problem) => (None, Some(problem.to_string())),
    };
    let tool =
        |(name, tool): (&str, &ToolAnnotation)| ToolRow { name: visible::line(name), means: means(tool) };
    ServerRow {
        name: visible::line(&server.name),
        suspended: None,
        description: server.description.as_deref().map(visible::line),
        command: visible::line(&server.command_line()),
        sandboxed: server.sandbox.settings().is_some(),
        remote: server.remote.is_some(),
        reaches: reaches(server),
        network: network(server),
        tools: annotations.tools(&server.name).map(tool).collect(),
        changed_tools: Vec::new(),
        version,
        problem,
        can_install: matches!(RunnerCommand::parse(server), Ok(Some(_))),
        live,
        openings: entry_permissions(server).into_iter().map(|opening| opened(server, opening)).collect(),
        limits: limits(server).into_iter().map(limited).collect(),
        secrets: server.secret_names().iter().map(|name| name.as_str().to_owned()).collect(),
        can_log_in: server.remote.as_ref().is_some_and(RemoteServer::uses_login),
        login: None,
        login_required: false,
    }
}

fn logged_in(mark: &LoginRecord) -> LoginRow {
    let scopes = mark.scopes.iter().map(|scope| visible::line(scope)).collect();
    LoginRow { issuer: visible::line(&mark.issuer), scopes, has_ended: mark.has_expired(SystemTime::now()) }
}

fn network(server: &Server) -> Option<NetworkRow> {
    let network = server.sandbox.settings()?.network.as_ref().filter(|network| !network.is_closed())?;
    let hosts = network.allowed_domains.iter().map(|host| visible::line(host)).collect();
    Some(NetworkRow { hosts, asks: network.ask_unknown })
}

fn opened(server: &Server, opening: EntryPermission) -> OpeningRow {
    OpeningRow { words: opening.describe(&visible::line(&server.name)), opening }
}

fn limited(one: ServerLimit) -> LimitRow {
    let ServerLimit { limit, own, default } = one;
    LimitRow { limit, name: limit.name(), unit: limit.unit(), own, default }
}

fn removed(one: RemovedServer) -> RemovedRow {
    RemovedRow { name: visible::line(&one.name), entry: visible::lines(&one.entry) }
}

/// Describes the distinct roles of a tool's arguments.
fn means(tool: &ToolAnnotation) -> String {
    let mut names: Vec<&str> = Vec::new();
    for role in tool.arguments.iter().flat_map(|(_, roles)| &roles.default) {
        if *role != Role::None && !names.contains(&role.name()) {
            names.push(role.name());
        }
    }
    if names.is_empty() { "no files or hosts".to_owned() } else { names.join(", ") }
}

fn catalog_row(known: &KnownServer) -> CatalogRow {
    let (from, package) = match &known.source {
        Source::Own { .. } => ("comes with IronCurtain".to_owned(), false),
        Source::Npm { package, version, .. } => (format!("npm package {package} {version}"), true),
        Source::Pypi { package, version, .. } => (format!("PyPI package {package} {version}"), true),
    };
    CatalogRow {
        id: known.id.clone(),
        title: known.title.clone(),
        about: known.about.clone(),
        why: known.why.clone(),
        from,
        needs: known.needs.clone(),
        settings: known.settings.clone(),
        package,
    }
}
