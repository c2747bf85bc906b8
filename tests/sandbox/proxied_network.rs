//! Network for the suite: a virtual link with the proxy at one end, and servers that record connections at the other
//! end.
//!
//! - The network needs no privileges, because the suite restarts itself in a user namespace.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::tools::Tools;
use ironcurtain_testkit::external_servers::ExternalServers;

/// Address of the servers to which the permitted twins connect.
pub(crate) const FREE: &str = "9.9.9.10";
/// Address of the allowed name. Only permitted traffic may arrive here.
pub(crate) const ALLOWED: &str = "9.9.9.9";
/// Addresses that no rule allows.
const OTHERS: [&str; 3] = ["9.9.9.66/24", "10.9.9.9/24", "169.254.169.254/24"];
const OTHER_V6: &str = "2620:fe::66/64";
/// Public address at the proxy's end of the link.
pub(crate) const OWN: &str = "9.9.9.1";

const PORTS: [&str; 6] = ["22", "25", "53", "80", "443", "8080"];

static WORLD: OnceLock<World> = OnceLock::new();

struct World {
    log: PathBuf,
    /// Number of lines of the log that were already checked.
    told: AtomicUsize,
}

/// Creates the network on the first call.
pub(crate) fn start(tools: &Tools) -> ExternalServers {
    let log = tools.place.join(format!("ic-outside-{}", std::process::id()));
    fs::write(&log, "").unwrap();
    let words = [tools.probe.as_ref(), "serve".as_ref(), log.as_os_str()];
    let servers = words.into_iter().chain(PORTS.map(OsStr::new));
    let near = [&format!("{OWN}/24"), "10.9.9.1/24", "169.254.169.1/24", "2620:fe::1/64"];
    let free = [FREE, ALLOWED].map(|free| format!("{free}/24"));
    let far: Vec<&str> =
        [OTHER_V6].into_iter().chain(OTHERS).chain(free.iter().map(String::as_str)).collect();
    let outside = ExternalServers::start(servers, &near, &far);
    assert!(WORLD.set(World { log, told: AtomicUsize::new(0) }).is_ok(), "there is one world");
    outside
}

/// Returns the forbidden connections since the last call to this function. A connection to an allowed name's address is
/// acceptable if it carries no data.
pub(crate) fn forbidden_connections() -> Vec<String> {
    let Some(world) = WORLD.get() else { return vec![] };
    let log = fs::read_to_string(&world.log).unwrap();
    let told = world.told.fetch_max(log.lines().count(), Ordering::SeqCst);
    let is_in_order = |line: &&str| {
        line.starts_with(&format!("{FREE} "))
            || line.starts_with(&format!("{ALLOWED} ")) && line.ends_with(" opened")
    };
    log.lines().skip(told).filter(|line| !is_in_order(line)).map(|line| format!("outside: {line}")).collect()
}
