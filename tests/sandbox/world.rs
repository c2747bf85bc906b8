//! A network of the suite's own: the proxy on one side of a wire, and on the other servers that write down who came.
//!
//! - It needs no rights: the suite runs itself again in a user namespace, where it may make what it likes.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::tools::Tools;

/// Set in the second start.
const INSIDE: &str = "ESCAPE_SUITE_INSIDE";

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

pub(crate) fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Runs a test of this program in a network of its own.
pub(crate) fn run_inside(test: &str) {
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let (said, complained) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(
        run.status.success() && said.contains("1 passed"),
        "in a network of its own: {said}\n{complained}"
    );
}

/// The servers; they end when this is dropped.
pub(crate) struct Servers(Child);

impl Drop for Servers {
    fn drop(&mut self) {
        // They are gone with their network in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the network, once.
pub(crate) fn start(tools: &Tools) -> Servers {
    let log = tools.place.join(format!("ic-outside-{}", std::process::id()));
    fs::write(&log, "").unwrap();
    let mut servers = Command::new("unshare")
        .args(["--net", "--", &tools.probe, "serve"])
        .arg(&log)
        .args(PORTS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(servers.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let there = format!("nsenter --target {} --net -- ip", servers.id());
    let mut script = format!(
        "PATH=\"$PATH:/usr/sbin:/sbin\"
         ip link set lo up
         ip link add near type veth peer name far netns {}
         ip link set near up
         ip addr add {OWN}/24 dev near
         ip addr add 10.9.9.1/24 dev near
         ip addr add 169.254.169.1/24 dev near
         ip addr add 2620:fe::1/64 dev near nodad
         {there} link set lo up
         {there} link set far up
         {there} addr add {OTHER_V6} dev far nodad\n",
        servers.id()
    );
    for address in
        OTHERS.into_iter().map(str::to_owned).chain([FREE, ALLOWED].map(|free| format!("{free}/24")))
    {
        script += &format!("{there} addr add {address} dev far\n");
    }
    let made = Command::new("sh").args(["-ec", &script]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(WORLD.set(World { log, told: AtomicUsize::new(0) }).is_ok(), "there is one world");
    Servers(servers)
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
