//! Process that serves a sandbox's TUN device ([`ironcurtain_egress::tun`]).
//!
//! - The process handles packets that may be hostile, so it has no privileges: it runs in the sandbox's network
//!   namespace, without capabilities, and Landlock and seccomp leave it nothing but its descriptors and connections to
//!   the proxy.
//! - The process and the device exist as long as the supervisor.

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr},
    os::fd::OwnedFd,
    process::ExitCode,
};

use ironcurtain_egress::tun::{TunNetwork, serve_tun};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::{
    process::{Pid, Resource, Rlimit, setrlimit},
    thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs},
};
use tokio::runtime;

use crate::{seccomp, spec::PROXY_PORT, sys};

/// The kernel's tables of this process's network namespace.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Serves a device until it fails.
///
/// Arguments: the supervisor's process id; the descriptor of the device.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, device] = args else { return ExitCode::from(2) };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let Ok(device) = sys::process::take_descriptor(device) else { return ExitCode::from(2) };
    // The caller has no use for the error: without this process, the device does not exist.
    let _ = serve(parent, device);
    ExitCode::FAILURE
}

fn serve(parent: Pid, device: OwnedFd) -> io::Result<io::Error> {
    sys::process::bind_to_parent(parent)?;
    // The second table does not exist if the kernel has no IPv6.
    let tables = TABLES.iter().filter_map(|table| File::open(table).ok()).collect();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    confine()?;
    let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT));
    Ok(runtime.block_on(serve_tun(TunNetwork { device: device.into(), proxy, tables })))
}

/// Gives up all privileges.
fn confine() -> io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let confined = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rule(NetPort::new(PROXY_PORT, AccessNet::ConnectTcp)))
        .and_then(RulesetCreated::restrict_self);
    confined.map_err(io::Error::other)?;
    seccomp::allow_only_packets().map_err(io::Error::other)
}
