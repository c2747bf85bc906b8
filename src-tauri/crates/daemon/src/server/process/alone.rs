//! A server that belongs to no session: started to be looked at, with what its entry opens and nothing granted.
//!
//! - A program that a server beside it may write is refused.
//! - Folders that it may write to are watched for files that run later, as in a session; each that it leaves is moved away.

use super::{Containment, Process, RemoteWay, Start, start};
use crate::autostart::{LoneWatch, rules};
use crate::containment::{Profile, ServerPrograms, Surroundings};
use crate::network::{ServesNetwork, dialer_off_record};
use crate::reload::Writable;
use crate::server::start_error::ServerStartError;
use ironcurtain_config::home::Home;
use ironcurtain_config::{AutostartSettings, FileView, Server, Servers};
use ironcurtain_grants::mounts::Need;
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::wire::Memory;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_paths::random_name;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The memory for a remote server that belongs to no session, in MiB.
const ALONE_MIB: u32 = 64;

/// The servers beside one that is started alone, and what outlives their sessions: they may run meanwhile.
#[derive(Debug, Clone)]
pub struct ServersBeside {
    /// The configured servers.
    pub servers: Servers,
    /// The standing grants.
    pub grants: Vec<StandingGrant>,
}

/// A server that was started alone.
#[derive(Debug)]
pub struct LoneProcess {
    /// Its process.
    pub process: Process,
    /// The watch over what it may write to; nothing where that goes with it.
    pub watch: Option<LoneWatch>,
}

/// Starts a server that belongs to no session, with this network.
///
/// # Errors
/// [`ServerStartError`].
pub async fn start_alone(
    containment: &Containment,
    server: &Server,
    (programs, around): (&ServerPrograms, &Surroundings),
    network: Option<&dyn ServesNetwork>,
    (home, beside): (&Home, ServersBeside),
) -> Result<LoneProcess, ServerStartError> {
    let grants = GrantTable::of(beside.grants);
    let (home, around_it, name) = (home.clone(), around.clone(), server.name.clone());
    let refuses_program = move |program: &Path| {
        let writable = Writable::by(&home, &around_it.home, &beside.servers, &grants);
        writable.refuse_program(program, &name, &around_it.protected)
    };
    let needs = containment.standing(around);
    let (watch, closed) = match containment {
        Containment::Native(profile, view) => watch(profile, *view, &needs, around)?,
        Containment::Srt(..) | Containment::Plain | Containment::Remote => (None, BTreeMap::new()),
    };
    let way = server.remote.as_ref().map(|remote| RemoteWay {
        dialer: dialer_off_record(&server.name, remote.rules().unwrap_or_default()),
        memory: Memory::new(ALONE_MIB, ALONE_MIB).allowance(1),
        waited_for: None,
    });
    let start_it = Start {
        server,
        programs,
        refuses_program: &refuses_program,
        around,
        network,
        needs: &needs,
        watch: None,
        closed,
        way,
        gate: None,
    };
    Ok(LoneProcess { process: start(containment, start_it).await?, watch })
}

type Closed = BTreeMap<CanonicalPath, Vec<String>>;

fn watch(
    profile: &Profile,
    view: FileView,
    needs: &[Need],
    around: &Surroundings,
) -> io::Result<(Option<LoneWatch>, Closed)> {
    let granted = needs.iter().filter(|need| need.writable).map(|need| need.path.clone());
    let roots: Vec<CanonicalPath> = around.writable(profile, view).into_iter().chain(granted).collect();
    // The first is a folder of its own that goes with it.
    let Some((_, roots @ [_, ..])) = roots.split_first() else { return Ok((None, Closed::new())) };
    let strict = Profile { autostart: AutostartSettings::Strict, ..profile.clone() };
    let name = format!("alone-{}", random_name()?);
    let (watch, closed) = LoneWatch::begin(around.sandboxes.as_path(), &name, rules(&strict, around), roots)?;
    Ok((Some(watch), closed))
}
