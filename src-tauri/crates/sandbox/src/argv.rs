//! The command line of bubblewrap: a pure function of what is wanted and what the host is like.
//!
//! - The options travel by descriptor (`--args`), so the server's environment is on no command line.
//! - Order matters to bubblewrap: system, `/etc`, kernel file systems, `/tmp`, then paths of the person's, which may lie
//!   below any of these; the root is closed for writing last.

use std::collections::BTreeMap;

use crate::{
    host::{Host, Top},
    shape::Layout,
    spec::{Spec, View},
};

/// Numbers of the descriptors that bubblewrap reads from and writes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    pub(crate) info: i32,
    pub(crate) seccomp: [i32; 2],
    pub(crate) passwd: i32,
    pub(crate) group: i32,
}

/// All options of bubblewrap, without the command.
pub(crate) fn bwrap_argv(spec: &Spec, layout: &Layout, host: &Host, fds: Descriptors) -> Vec<String> {
    let mut argv = Argv::default();
    argv.add(["--unshare-all", "--unshare-user", "--disable-userns"]);
    argv.add(["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "sandbox"]);
    argv.add(["--info-fd", &fds.info.to_string()]);
    for fd in fds.seccomp {
        argv.add(["--add-seccomp-fd", &fd.to_string()]);
    }
    argv.add(["--clearenv"]);
    for (name, value) in &spec.env {
        argv.add(["--setenv", name, value]);
    }

    match &spec.view {
        View::Roots { .. } => argv.system(host, fds),
        View::HostRead { .. } => argv.tops(&host.tops),
    }
    argv.kernel(host);
    let own_tmp = match &spec.view {
        View::Roots { .. } => true,
        View::HostRead { private_tmp, .. } => *private_tmp,
    };
    argv.temporary("/dev/shm", spec);
    if own_tmp {
        argv.temporary("/tmp", spec);
    }
    argv.add(["--remount-ro", "/dev"]);

    if let View::Roots { programs, .. } = &spec.view {
        argv.add(["--dir", "/run"]);
        for path in programs {
            argv.add(["--ro-bind", path, path]);
        }
    }
    let on_tmp = layout.shown.iter().filter(|path| own_tmp && path.starts_with("/tmp/"));
    let shown = on_tmp.map(|path| (path, "--ro-bind"));
    let writable = layout.writable.iter().map(|path| (path, "--bind"));
    let placed: BTreeMap<&String, &str> = shown.chain(writable).collect();
    for (path, bind) in placed {
        argv.add([bind, path, path]);
    }
    argv.add(["--remount-ro", "/", "--chdir", "/"]);
    argv.0
}

/// `/etc/passwd` inside: the one user there is.
pub(crate) fn passwd(spec: &Spec, host: &Host) -> String {
    let home = spec.env.get("HOME").map_or("/", String::as_str);
    let home = if home.contains([':', '\n']) { "/" } else { home };
    format!("{}:x:{}:{}::{home}:/bin/sh\n", user_name(host), host.uid, host.gid)
}

/// `/etc/group` inside: the one group there is.
pub(crate) fn group(host: &Host) -> String {
    format!("{}:x:{}:\n", user_name(host), host.gid)
}

fn user_name(host: &Host) -> &'static str {
    if host.uid == 0 { "root" } else { "user" }
}

#[derive(Default)]
struct Argv(Vec<String>);

impl Argv {
    /// The part of the host's system that programs need to run.
    fn system(&mut self, host: &Host, fds: Descriptors) {
        self.add(["--ro-bind", "/usr", "/usr"]);
        self.tops(&host.tops);
        for path in &host.etc {
            self.add(["--ro-bind", path, path]);
        }
        self.add(["--perms", "0444", "--file", &fds.passwd.to_string(), "/etc/passwd"]);
        self.add(["--perms", "0444", "--file", &fds.group.to_string(), "/etc/group"]);
    }

    fn tops(&mut self, tops: &[(String, Top)]) {
        for (path, top) in tops {
            match top {
                Top::Link(target) => self.add(["--symlink", target, path]),
                Top::There => self.add(["--ro-bind", path, path]),
            }
        }
    }

    fn kernel(&mut self, host: &Host) {
        self.add(["--proc", "/proc"]);
        for path in &host.frozen {
            self.add(["--ro-bind", path, path]);
        }
        for path in &host.masked {
            self.add(["--ro-bind", "/dev/null", path]);
        }
        self.add(["--dev", "/dev"]);
    }

    fn temporary(&mut self, path: &str, spec: &Spec) {
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
    use super::*;
    use crate::spec::{Limits, Network, Persistence};

    #[test]
    fn the_whole_command_line_of_an_ordinary_user() {
        let host = Host {
            uid: 1000,
            gid: 1001,
            tops: vec![("/bin".into(), Top::Link("usr/bin".into())), ("/lib64".into(), Top::There)],
            etc: vec!["/etc/hosts".into()],
            masked: vec![],
            frozen: vec![],
        };
        let expected = "--unshare-all --unshare-user --disable-userns --cap-drop ALL --new-session --die-with-parent \
            --hostname sandbox --info-fd 20 --add-seccomp-fd 21 --add-seccomp-fd 22 --clearenv \
            --setenv HOME /s --setenv TOKEN secret --ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /lib64 /lib64 \
            --ro-bind /etc/hosts /etc/hosts --perms 0444 --file 23 /etc/passwd --perms 0444 --file 24 /etc/group \
            --proc /proc --dev /dev --size 4096 --perms 1777 --tmpfs /dev/shm \
            --size 4096 --perms 1777 --tmpfs /tmp --remount-ro /dev --dir /run \
            --ro-bind /opt/node_modules /opt/node_modules --bind /s /s --remount-ro / --chdir /";
        assert_eq!(bwrap_argv(&spec(), &layout(), &host, FDS).join(" "), expected);
        assert_eq!(passwd(&spec(), &host), "user:x:1000:1001::/s:/bin/sh\n");
        assert_eq!(group(&host), "user:x:1001:\n");
    }

    #[test]
    fn root_has_the_kernels_files_masked_too() {
        let host = Host {
            uid: 0,
            gid: 0,
            tops: vec![],
            etc: vec![],
            masked: vec!["/proc/kcore".into()],
            frozen: vec!["/proc/sys".into()],
        };
        let argv = bwrap_argv(&spec(), &layout(), &host, FDS).join(" ");
        assert!(argv.contains(
            "--proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /dev/null /proc/kcore --dev /dev"
        ));
        assert_eq!(passwd(&spec(), &host), "root:x:0:0::/s:/bin/sh\n");
    }

    const FDS: Descriptors = Descriptors { info: 20, seccomp: [21, 22], passwd: 23, group: 24 };

    #[test]
    fn the_hosts_tree_is_shown_with_what_is_writable_on_top() {
        let host = Host {
            uid: 1000,
            gid: 1000,
            tops: vec![("/bin".into(), Top::Link("usr/bin".into())), ("/home".into(), Top::There)],
            etc: vec![],
            masked: vec![],
            frozen: vec![],
        };
        let view = View::HostRead {
            session_dir: Some("/s".into()),
            deny_read: vec![],
            allow_read: vec![],
            allow_write: vec![],
            deny_write: vec![],
            private_tmp: true,
        };
        let layout = Layout {
            writable: vec!["/s".into(), "/tmp/w".into()],
            shown: vec!["/home/r".into(), "/tmp/r".into()],
            ..Layout::default()
        };
        let argv = bwrap_argv(&Spec { view, ..spec() }, &layout, &host, FDS).join(" ");
        let expected = "--symlink usr/bin /bin --ro-bind /home /home --proc /proc --dev /dev \
            --size 4096 --perms 1777 --tmpfs /dev/shm --size 4096 --perms 1777 --tmpfs /tmp --remount-ro /dev \
            --bind /s /s --ro-bind /tmp/r /tmp/r --bind /tmp/w /tmp/w --remount-ro / --chdir /";
        let (_, from_tree) = argv.split_at(argv.find("--symlink").unwrap());
        assert_eq!(from_tree, expected);
    }

    fn layout() -> Layout {
        Layout { writable: vec!["/s".into()], ..Layout::default() }
    }

    fn spec() -> Spec {
        Spec {
            argv: vec!["server".into()],
            env: BTreeMap::from([("HOME".into(), "/s".into()), ("TOKEN".into(), "secret".into())]),
            cwd: None,
            view: View::Roots { session_dir: "/s".into(), programs: vec!["/opt/node_modules".into()] },
            mounts: vec![],
            network: Network::None,
            unix_sockets: false,
            persistence: Persistence::default(),
            limits: Limits { tmp_size: Some(4096), ..Limits::default() },
            state_dir: None,
            allow_root: false,
        }
    }
}
