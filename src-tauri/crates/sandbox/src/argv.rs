//! Bubblewrap's command line, derived from the specification and the host without side effects.
//!
//! - Options are passed through a descriptor (`--args`), so no command line exposes the server's environment.
//! - Bubblewrap mounts only the base of the sandbox: the system directories, the kernel's file systems and `/tmp`. Its
//!   last option makes the root read-only. The supervisor adds all other mounts
//!   ([`InitialMounts`](crate::mounts::InitialMounts)).

use std::net::IpAddr;

use crate::{
    host::{HOSTS_FILE, HostTree, RESOLVER_FILE, RootEntry},
    seccomp::PROGRAMS,
    spec::{SOCKET_FOLDER, Spec, View},
};

/// Name of the machine in a sandbox.
const HOSTNAME: &str = "sandbox";

/// Size in bytes of the tmpfs that holds the launcher's sockets.
const SOCKET_FOLDER_SIZE: &str = "65536";

/// Descriptor numbers that bubblewrap inherits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    pub(crate) info: i32,
    pub(crate) frame: i32,
    pub(crate) seccomp: [i32; PROGRAMS],
    pub(crate) passwd: i32,
    pub(crate) group: i32,
    pub(crate) resolver: i32,
    pub(crate) hosts: i32,
}

/// Returns bubblewrap's options, without the command it runs.
pub(crate) fn bwrap_argv(spec: &Spec, host: &HostTree, fds: Descriptors) -> Vec<String> {
    let mut argv = Argv::default();
    argv.add(["--unshare-all", "--unshare-user", "--disable-userns"]);
    argv.add(["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", HOSTNAME]);
    argv.add(["--info-fd", &fds.info.to_string(), "--block-fd", &fds.frame.to_string()]);
    for fd in fds.seccomp {
        argv.add(["--add-seccomp-fd", &fd.to_string()]);
    }
    argv.add(["--clearenv"]);
    for (name, value) in &spec.env {
        argv.add(["--setenv", name, value]);
    }

    for (path, entry) in host.frame() {
        match entry {
            RootEntry::Link(target) => argv.add(["--symlink", target, path]),
            RootEntry::Present => argv.add(["--ro-bind", path, path]),
        }
    }
    if let View::Roots { .. } | View::Served { .. } = &spec.view {
        argv.add(["--perms", "0444", "--file", &fds.passwd.to_string(), "/etc/passwd"]);
        argv.add(["--perms", "0444", "--file", &fds.group.to_string(), "/etc/group"]);
        if spec.has_tun() {
            argv.add(["--perms", "0444", "--file", &fds.resolver.to_string(), RESOLVER_FILE]);
            argv.add(["--perms", "0444", "--file", &fds.hosts.to_string(), HOSTS_FILE]);
        }
        argv.add(["--dir", "/run"]);
    }
    if !spec.view.sockets().is_empty() {
        argv.add(["--size", SOCKET_FOLDER_SIZE, "--perms", "0700", "--tmpfs", SOCKET_FOLDER]);
    }
    argv.add(["--proc", "/proc", "--dev", "/dev"]);
    argv.add_tmpfs("/dev/shm", spec);
    if spec.view.has_own_tmp() {
        argv.add_tmpfs("/tmp", spec);
    }
    argv.add(["--remount-ro", "/dev"]);
    argv.add(["--remount-ro", "/", "--chdir", "/"]);
    argv.0
}

/// Returns an `/etc/passwd` that lists only the sandbox's user.
pub(crate) fn passwd(spec: &Spec, uid: u32, gid: u32) -> String {
    let home = spec.env.get("HOME").map_or("/", String::as_str);
    let home = if home.contains([':', '\n']) { "/" } else { home };
    format!("{}:x:{uid}:{gid}::{home}:/bin/sh\n", user_name(uid))
}

/// Returns an `/etc/group` that lists only the primary group of the sandbox's user.
pub(crate) fn group(uid: u32, gid: u32) -> String {
    format!("{}:x:{gid}:\n", user_name(uid))
}

/// Returns an `/etc/resolv.conf` that names the resolver behind the TUN device.
pub(crate) fn resolv_conf() -> String {
    format!("nameserver {}\n", ironcurtain_egress::tun::RESOLVER)
}

/// Returns an `/etc/hosts` with the names of the machine itself in the host's file. The proxy resolves all other names
/// of that file so that it judges the name instead of an address.
pub(crate) fn hosts_file(host: &str) -> String {
    let is_own = |line: &&str| {
        let address = line.split_ascii_whitespace().next().and_then(|word| word.parse::<IpAddr>().ok());
        address.is_some_and(|address| address.is_loopback())
    };
    let own = host.lines().filter(is_own);
    let first = format!("127.0.0.1 localhost {HOSTNAME}");
    [first.as_str(), "::1 localhost"].into_iter().chain(own).map(|line| format!("{line}\n")).collect()
}

fn user_name(uid: u32) -> &'static str {
    if uid == 0 { "root" } else { "user" }
}

#[derive(Default)]
struct Argv(Vec<String>);

impl Argv {
    fn add_tmpfs(&mut self, path: &str, spec: &Spec) {
        if let Some(size) = spec.limits.tmp_size {
            self.add(["--size", &size.to_string()]);
        }
        self.add(["--perms", "1777", "--tmpfs", path]);
    }

    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::spec::{NetworkAccess, ResourceLimits, UnixSockets};

    #[test]
    fn builds_command_line_of_roots_view() {
        let host = HostTree {
            root_entries: vec![
                ("/usr".into(), RootEntry::Present),
                ("/bin".into(), RootEntry::Link("usr/bin".into())),
                ("/lib64".into(), RootEntry::Present),
            ],
            etc: vec!["/etc/hosts".into()],
            ..host()
        };
        let expected = "--unshare-all --unshare-user --disable-userns --cap-drop ALL --new-session --die-with-parent \
            --hostname sandbox --info-fd 20 --block-fd 26 --add-seccomp-fd 21 --add-seccomp-fd 22 --add-seccomp-fd 25 --clearenv \
            --setenv HOME /s --setenv TOKEN secret --ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /lib64 /lib64 \
            --perms 0444 --file 23 /etc/passwd --perms 0444 --file 24 /etc/group --dir /run \
            --proc /proc --dev /dev --size 4096 --perms 1777 --tmpfs /dev/shm \
            --size 4096 --perms 1777 --tmpfs /tmp --remount-ro /dev --remount-ro / --chdir /";
        assert_eq!(bwrap_argv(&spec(), &host, FDS).join(" "), expected);
        let with_tun = Spec { network: NetworkAccess::ProxiedWithServices, ..spec() };
        let file = "--file 24 /etc/group --perms 0444 --file 27 /etc/resolv.conf \
            --perms 0444 --file 28 /etc/hosts --dir /run";
        assert!(bwrap_argv(&with_tun, &host, FDS).join(" ").contains(file));
        assert_eq!(passwd(&spec(), 1000, 1001), "user:x:1000:1001::/s:/bin/sh\n");
        assert_eq!(group(1000, 1001), "user:x:1001:\n");
    }

    #[test]
    fn hosts_file_has_only_the_machine_itself() {
        let host =
            "# 127.0.0.1 off\n127.0.1.1\tdesk\n10.0.0.7 nas\n127.0.0.1 app.test # mine\nfe80::1 x\n::1 six\n";
        let expected = "127.0.0.1 localhost sandbox\n::1 localhost\n127.0.1.1\tdesk\n127.0.0.1 app.test # mine\n::1 six\n";
        assert_eq!(hosts_file(host), expected);
        assert_eq!(hosts_file(""), "127.0.0.1 localhost sandbox\n::1 localhost\n");
        assert_eq!(resolv_conf(), "nameserver 198.18.0.1\n");
    }

    #[test]
    fn host_read_frame_has_only_system_folders() {
        let host = HostTree {
            root_entries: vec![
                ("/bin".into(), RootEntry::Link("usr/bin".into())),
                ("/etc".into(), RootEntry::Present),
                ("/home".into(), RootEntry::Present),
                ("/nix".into(), RootEntry::Present),
                ("/usr".into(), RootEntry::Present),
            ],
            ..host()
        };
        let view = View::HostRead {
            session_dir: Some("/s".into()),
            deny_read: vec![],
            allow_read: vec![],
            allow_write: vec![],
            deny_write: vec![],
            private_tmp: false,
        };
        let argv = bwrap_argv(&Spec { view, ..spec() }, &host, FDS).join(" ");
        let expected = "--symlink usr/bin /bin --ro-bind /nix /nix --ro-bind /usr /usr --proc /proc --dev /dev \
            --size 4096 --perms 1777 --tmpfs /dev/shm --remount-ro /dev --remount-ro / --chdir /";
        let (_, from_tree) = argv.split_at(argv.find("--symlink").unwrap());
        assert_eq!(from_tree, expected);
        assert_eq!(host.rest().collect::<Vec<_>>(), ["/etc", "/home"]);
        assert_eq!(passwd(&spec(), 0, 0), "root:x:0:0::/s:/bin/sh\n");
    }

    const FDS: Descriptors = Descriptors {
        info: 20,
        frame: 26,
        seccomp: [21, 22, 25],
        passwd: 23,
        group: 24,
        resolver: 27,
        hosts: 28,
    };

    fn host() -> HostTree {
        HostTree { root_entries: vec![], etc: vec![], masked: vec![], read_only_paths: vec![] }
    }

    fn spec() -> Spec {
        Spec {
            argv: vec!["server".into()],
            env: BTreeMap::from([("HOME".into(), "/s".into()), ("TOKEN".into(), "secret".into())]),
            cwd: None,
            home: None,
            view: View::Roots { session_dir: "/s".into(), programs: vec!["/opt/node_modules".into()] },
            mounts: vec![],
            network: NetworkAccess::None,
            unix_sockets: UnixSockets::None,
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: ResourceLimits { tmp_size: Some(4096), ..ResourceLimits::default() },
            state_dir: "/state".into(),
            allow_root: false,
        }
    }
}
