//! Gives a sandbox a TUN device, for programs that ignore the proxy variables.
//!
//! - INVARIANT: only the serving process holds the device, so the device disappears when that process dies. Programs
//!   then have no network besides the proxy.
//! - The device is made from outside: nothing in the sandbox can open `/dev/net/tun` or change a network device.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Child, Command, Stdio},
};

use ironcurtain_egress::tun::{CLIENT, MTU, NETWORK_BITS};
use rustix::{
    process::getpid,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    fd_passing,
    sys::{
        self,
        tun::{DEVICE_FILE, TunAddress},
    },
};

const NAME: &str = "ironcurtain";
const ADDRESS: TunAddress = TunAddress { address: CLIENT, bits: NETWORK_BITS, mtu: MTU };

/// Settings of the sandbox's network namespace, which are not essential. Containers often have them read-only.
const SETTINGS: [(&str, &str); 2] = [
    // While a question is open, the kernel repeats the SYN for at least 40 minutes instead of two.
    ("/proc/sys/net/ipv4/tcp_syn_retries", "30"),
    // Without addresses, IPv6 is unreachable at once.
    ("/proc/sys/net/ipv6/conf/ironcurtain/disable_ipv6", "1"),
];

/// Process that serves a TUN device. Dropping this value kills the process.
#[derive(Debug)]
pub(super) struct ServedTun(Child);

impl ServedTun {
    /// Creates the device in a network namespace and starts the process that serves it. The caller must be
    /// single-threaded.
    pub(super) fn start(network: OwnedFd) -> io::Result<Self> {
        let device = create(&network)?;
        let program = File::open("/proc/self/exe")?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.arg("--tun").arg(getpid().as_raw_nonzero().to_string()).arg(device.as_raw_fd().to_string());
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::process::inherit(&mut command, &[device.as_fd(), program.as_fd()]);
        sys::process::prepare(&mut command, move || enter(&network));
        Ok(Self(command.spawn()?))
    }
}

impl Drop for ServedTun {
    fn drop(&mut self) {
        // Ignores errors: the process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates the device in a child process, because a process cannot return from a network namespace.
fn create(network: &OwnedFd) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    sys::process::try_run_in_fork(|| {
        enter(network)?;
        let device = sys::tun::create(NAME, ADDRESS)
            .map_err(|error| io::Error::other(format!("`{DEVICE_FILE}`: {error}")))?;
        for (setting, value) in SETTINGS {
            // Ignores the error, because the settings are not essential.
            let _ = fs::write(setting, value);
        }
        fd_passing::send(&theirs, device)
    })?;
    fd_passing::receive(&ours)
}

fn enter(network: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}
