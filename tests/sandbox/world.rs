//! A network of the suite's own: the proxy on one side of a wire, and on the other servers that write down who came.
//!
//! - It needs no rights: the suite runs itself again in a user namespace, where it may make what it likes.

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
use ironcurtain_testkit::outside::Outside;

/// The places that twins may go to, and nobody minds.
pub(crate) const FREE: &str = "9.9.9.10";
/// The address of the allowed name: nothing may be said there but by the rules.
pub(crate) const ALLOWED: &str = "9.9.9.9";
/// Addresses that no rule allows.
const OTHERS: [&str; 3] = ["9.9.9.66/24", "10.9.9.9/24", "169.254.169.254/24"];
const OTHER_V6: &str = "2620:fe::66/64";
/// This side's public address.
pub(crate) const OWN: &str = "9.9.9.1";

const PORTS: [&str; 6] = ["22", "25", "53", "80", "443", "8080"];

static WORLD: OnceLock<World> = OnceLock::new();

struct World {
    log: PathBuf,
    /// The part of the log that has been told of.
    told: AtomicUsize,
}

/// Makes the network, once.
pub(crate) fn start(tools: &Tools) -> Outside {
    let log = tools.place.join(format!("ic-outside-{}", std::process::id()));
    fs::write(&log, "").unwrap();
    let words = [tools.probe.as_ref(), "serve".as_ref(), log.as_os_str()];
    let servers = words.into_iter().chain(PORTS.map(OsStr::new));
    let near = [&format!("{OWN}/24"), "10.9.9.1/24", "169.254.169.1/24", "2620:fe::1/64"];
    let free = [FREE, ALLOWED].map(|free| format!("{free}/24"));
    let far: Vec<&str> =
        [OTHER_V6].into_iter().chain(OTHERS).chain(free.iter().map(String::as_str)).collect();
    let outside = Outside::start(servers, &near, &far);
    assert!(WORLD.set(World { log, told: AtomicUsize::new(0) }).is_ok(), "there is one world");
    outside
}

/// Who came and should not have, since this was asked last. That somebody listens for a greeting at the address of an
/// allowed name is in order as long as nothing is said there.
pub(crate) fn heard() -> Vec<String> {
    let Some(world) = WORLD.get() else { return vec![] };
    let log = fs::read_to_string(&world.log).unwrap();
    let told = world.told.fetch_max(log.lines().count(), Ordering::SeqCst);
    let is_in_order = |line: &&str| {
        line.starts_with(&format!("{FREE} "))
            || line.starts_with(&format!("{ALLOWED} ")) && line.ends_with(" opened")
    };
    log.lines().skip(told).filter(|line| !is_in_order(line)).map(|line| format!("outside: {line}")).collect()
}
