//! Tests the environment in which a server starts.

use std::{
    fs::{self, File},
    io::Read,
    net::TcpListener,
    path::Path,
};

use ironcurtain_sandbox::{ResourceLimits, SandboxEvent};

use crate::harness::{Fixture, Probe};

#[test]
fn environment_is_as_listed() {
    let fixture = Fixture::new();
    let mut spec = fixture.probe_spec();
    spec.env.insert("TOKEN".into(), "a secret = x".into());
    let mut probe = Probe::start(&spec);
    let mut seen: Vec<String> = probe.send_command("env").split(' ').map(str::to_owned).collect();
    seen.sort();
    let pwd = format!("PWD={}", fixture.path("session"));
    let expected = "= HOME=/tmp LANG=C.UTF-8 PATH=/usr/bin:/bin TOKEN=a ok secret x";
    let mut expected: Vec<&str> = expected.split(' ').chain([pwd.as_str()]).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let commands = crate::harness::processes_with("a secret");
    for (pid, name) in commands {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!line.contains("a secret"), "{name}: {line}");
    }
}

#[test]
fn only_standard_descriptors_are_open() {
    let fixture = Fixture::new();
    let secret = File::open(fixture.file("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command("fds"), "ok 0 1 2");
    drop(secret);
}

#[test]
fn network_is_only_its_own_loopback() {
    let fixture = Fixture::new();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command(&format!("connect {}", host.local_addr().unwrap())), "err ECONNREFUSED");
    assert_eq!(probe.send_command("connect 192.0.2.1:80"), "err ENETUNREACH");
    assert_eq!(probe.send_command("connect [2001:db8::1]:80"), "err ENETUNREACH");
    assert_eq!(probe.send_command("loopback"), "ok hello");
    std::net::TcpStream::connect(host.local_addr().unwrap()).unwrap();
}

#[test]
fn tree_is_minimal_and_read_only() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    let gone = ["/root", "/var/log", "/sys", "/mnt", "/etc/shadow", "/etc/machine-id", "/boot"];
    // The program itself is visible regardless of where it was built.
    for gone in gone.into_iter().filter(|gone| !crate::harness::probe().starts_with(gone)) {
        assert_eq!(probe.send_command(&format!("exists {gone}")), "err ENOENT", "{gone}");
    }
    for kept in ["/new", "/usr/new", "/etc/new", "/run/new", "/dev/new"] {
        assert_eq!(probe.send_command(&format!("write {kept} x")), "err EROFS", "{kept}");
    }
    for open in ["/tmp/new", "/dev/shm/new", "/dev/null"] {
        assert_eq!(probe.send_command(&format!("write {open} x")), "ok", "{open}");
    }
    assert_eq!(probe.send_command("write new x"), "ok");
    assert_eq!(fs::read_to_string(fixture.path("session/new")).unwrap(), "x");
    let uid = rustix::process::getuid().as_raw();
    let user = if uid == 0 { "root" } else { "user" };
    let gid = rustix::process::getgid().as_raw();
    assert_eq!(probe.send_command("read /etc/passwd"), format!("ok {user}:x:{uid}:{gid}::/tmp:/bin/sh"));
    assert_eq!(probe.send_command("read /etc/group"), format!("ok {user}:x:{gid}:"));
    assert_eq!(probe.send_command("read /proc/sys/kernel/hostname"), "ok sandbox");
}

#[test]
fn only_its_own_processes_are_visible() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    let names = probe.send_command("list /proc");
    let pids = names.split(' ').filter(|name| name.parse::<u32>().is_ok()).count();
    assert_eq!(pids, 2, "{names}");
}

#[test]
fn kernel_files_are_read_only_even_for_root() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    let root = rustix::process::getuid().is_root();
    let refused = if root { "err EROFS" } else { "err EACCES" };
    let files = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"];
    for file in files.into_iter().filter(|file| Path::new(file).exists()) {
        assert_eq!(probe.send_command(&format!("open-write {file}")), refused, "{file}");
    }
    assert_ne!(probe.send_command("read /proc/kcore").split(' ').next(), Some("ok"));
    if root {
        assert_eq!(probe.send_command("read /proc/keys"), "err EACCES");
        assert_eq!(probe.send_command("read /proc/timer_list"), "err EACCES");
    }
    assert!(probe.send_command("read /proc/sys/kernel/ostype").starts_with("ok Linux"));
    assert_eq!(probe.send_command("read /proc/self/oom_score_adj").split(' ').next(), Some("ok"));
}

#[test]
fn limits_hold() {
    let fixture = Fixture::new();
    let mut spec = fixture.probe_spec();
    spec.limits = ResourceLimits {
        processes: Some(20),
        open_files: Some(64),
        file_size: Some(8),
        tmp_size: Some(1 << 16),
        ..ResourceLimits::default()
    };
    let mut probe = Probe::start(&spec);
    assert_eq!(probe.send_command("limit processes"), "ok 20 20");
    assert_eq!(probe.send_command("limit files"), "ok 64 64");
    assert_eq!(probe.send_command("limit file-size"), "ok 8 8");
    assert_eq!(probe.send_command("limit core"), "ok 0 0");
    assert_eq!(probe.send_command("sleepers 5"), "ok");
    // The kernel exempts only root from this limit.
    let more = if rustix::process::getuid().is_root() { "ok" } else { "err EAGAIN" };
    assert_eq!(probe.send_command("sleepers 20"), more);

    let mut spec = fixture.probe_spec();
    spec.limits.tmp_size = Some(1 << 16);
    let mut probe = Probe::start(&spec);
    assert_eq!(probe.send_command("write /tmp/small x"), "ok");
    assert_ne!(probe.send_command(&format!("write /tmp/large {}", "x".repeat(1 << 17))), "ok");
}

#[test]
fn root_is_refused_unless_allowed() {
    let fixture = Fixture::new();
    let mut spec = fixture.probe_spec();
    spec.allow_root = false;
    let mut probe = Probe::launch(&spec);
    if rustix::process::getuid().is_root() {
        let SandboxEvent::Failed { reason } = probe.control.event().unwrap() else { panic!("it ran") };
        assert_eq!(
            reason,
            "refusing to run the sandbox as root; run as an ordinary user, or pass `--allow-root`"
        );
        assert_eq!(probe.wait().status, Some(125));
        let mut output = String::new();
        probe.stdout.read_to_string(&mut output).unwrap();
        assert_eq!(output, "");
    } else {
        assert_eq!(probe.control.event().unwrap(), SandboxEvent::Started);
    }
    assert_eq!(fixture.probe().send_command("cwd"), format!("ok {}", fixture.path("session")));
}
