//! Starts a server outside a session to inspect it. The server has the access in its entry, but no grants.
//!
//! - Refuses a program that another server can modify.
//! - Watches the server's writable folders for autostart files, as in a session, and quarantines files that it leaves
//!   behind.

use super::{Containment, Process, RemoteTransport, StartOptions, start};
use crate::network::{ServesNetwork, unrecorded_dialer};
use crate::server::start_error::ServerStartError;
use ironcurtain_autostart::{SessionlessWatch, autostart_rules};
use ironcurtain_config::home::Home;
use ironcurtain_config::{AutostartSettings, FileView, Server, Servers};
use ironcurtain_containment::{Profile, SandboxContext, ServerPrograms};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::remote::login::Dial;
use ironcurtain_mcp::wire::MemoryBudget;
use ironcurtain_paths::{CanonicalPath, random_name};
use ironcurtain_services::WritablePaths;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Memory budget for messages from a remote server outside a session, in MiB.
const MESSAGE_BUDGET_MIB: u32 = 64;

/// Servers that may be running at the same time, and their grants. They determine which programs another server can
/// modify.
#[derive(Debug, Clone)]
pub struct OtherServers {
    /// All servers in `mcp-servers.json`.
    pub servers: Servers,
    /// Grants that are not limited to a session.
    pub grants: Vec<StandingGrant>,
}

/// Server process outside a session.
#[derive(Debug)]
pub struct StandaloneProcess {
    /// Running server.
    pub process: Process,
    /// Watch of the server's writable folders, or `None` if no writable folder outlives the server.
    pub watch: Option<SessionlessWatch>,
}

/// Returns a factory for dialers that a server's login uses outside any session.
#[must_use]
pub fn unrecorded(server: &str) -> Dial {
    let server = server.to_owned();
    Arc::new(move |rules| unrecorded_dialer(&server, rules))
}

/// Starts a server outside a session. `network` is its network access.
///
/// # Errors
/// Returns [`ServerStartError`] if the server cannot be started.
pub async fn start_standalone(
    containment: &Containment,
    server: &Server,
    (programs, sandbox_context): (&ServerPrograms, &SandboxContext),
    network: Option<&dyn ServesNetwork>,
    (home, beside): (&Home, OtherServers),
) -> Result<StandaloneProcess, ServerStartError> {
    let grants = GrantTable::of(beside.grants);
    let (home, around_it, name) = (home.clone(), sandbox_context.clone(), server.name.clone());
    let refuses_program = move |program: &Path| {
        let writable = WritablePaths::new(&home, &around_it.home, &beside.servers, &grants);
        writable.refuse_program(program, &name, &around_it.protected)
    };
    let mounts = containment.always_writable(sandbox_context);
    let (watch, closed) = match containment {
        Containment::Native(profile, view) => watch(profile, *view, &mounts, sandbox_context)?,
        Containment::Asking(profile) => watch(profile, FileView::Roots, &mounts, sandbox_context)?,
        Containment::Srt(..) | Containment::Plain | Containment::Remote => (None, BTreeMap::new()),
    };
    let transport = server.remote.as_ref().map(|remote| RemoteTransport {
        dialer: unrecorded_dialer(&server.name, remote.rules().unwrap_or_default()),
        dial: unrecorded(&server.name),
        notify: Arc::new(|_| {}),
        memory: MemoryBudget::new(MESSAGE_BUDGET_MIB, MESSAGE_BUDGET_MIB).allowance(1),
        shutdown_token: None,
    });
    let start_it = StartOptions {
        server,
        programs,
        refuses_program: &refuses_program,
        sandbox_context,
        network,
        mounts: &mounts,
        watch: None,
        read_only: closed,
        transport,
        gate: None,
    };
    Ok(StandaloneProcess { process: start(containment, start_it).await?, watch })
}

type Closed = BTreeMap<CanonicalPath, Vec<String>>;

fn watch(
    profile: &Profile,
    view: FileView,
    mounts: &[MountRequest],
    sandbox_context: &SandboxContext,
) -> io::Result<(Option<SessionlessWatch>, Closed)> {
    let granted = mounts.iter().filter(|need| need.writable).map(|need| need.path.clone());
    let roots: Vec<CanonicalPath> =
        sandbox_context.writable(profile, view).into_iter().chain(granted).collect();
    // Skip the first root, a temporary folder that is removed with the server.
    let Some((_, roots @ [_, ..])) = roots.split_first() else { return Ok((None, Closed::new())) };
    let strict = Profile { autostart: AutostartSettings::Strict, ..profile.clone() };
    let name = format!("alone-{}", random_name()?);
    let (watch, closed) = SessionlessWatch::start(
        sandbox_context.sandboxes.as_path(),
        &name,
        autostart_rules(&strict, sandbox_context),
        roots,
    )?;
    Ok((Some(watch), closed))
}
