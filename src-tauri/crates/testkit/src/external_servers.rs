//! Servers outside the test's network. They run in another network namespace, which a virtual Ethernet pair connects to
//! the test's namespace.
//!
//! - The test must run in its own network namespace ([`crate::namespace`]).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// Running servers, killed on drop.
pub struct ExternalServers {
    servers: Child,
}

impl ExternalServers {
    /// Starts the servers, waits until they print `ready`, and connects the networks.
    ///
    /// `near` and `far` are the addresses of the test's and the servers' end, in the format of `ip addr add`.
    ///
    /// # Panics
    /// Panics if the servers or the networks cannot be set up.
    pub fn start(
        command: impl IntoIterator<Item = impl AsRef<OsStr>>,
        near: &[impl AsRef<str>],
        far: &[impl AsRef<str>],
    ) -> Self {
        let mut servers = Command::new("unshare")
            .args(["--net", "--"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`unshare` is installed");
        let mut ready = String::new();
        BufReader::new(servers.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let outside = Self { servers };
        assert_eq!(ready, "ready\n");
        outside.connect_networks(&texts(near), &texts(far));
        outside
    }

    fn connect_networks(&self, near: &[&str], far: &[&str]) {
        let id = self.servers.id();
        let ip_command = format!("nsenter --target {id} --net -- ip");
        let mut script = format!(
            "PATH=\"$PATH:/usr/sbin:/sbin\"
             ip link set lo up
             ip link add near type veth peer name far netns {id}
             ip link set near up
             {ip_command} link set lo up
             {ip_command} link set far up\n"
        );
        let mut add = |ip: &str, addresses: &[&str], end: &str| {
            for address in addresses {
                // Skips duplicate address detection, which delays the use of an IPv6 address.
                let option = if address.contains(':') { " nodad" } else { "" };
                writeln!(script, "{ip} addr add {address} dev {end}{option}").unwrap();
            }
        };
        add("ip", near, "near");
        add(&ip_command, far, "far");
        let output = Command::new("sh").args(["-ec", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn texts(all: &[impl AsRef<str>]) -> Vec<&str> {
    all.iter().map(AsRef::as_ref).collect()
}

impl Drop for ExternalServers {
    fn drop(&mut self) {
        // Ignores the error: the servers have already exited, for example with their network.
        let _ = self.servers.kill();
        let _ = self.servers.wait();
    }
}
