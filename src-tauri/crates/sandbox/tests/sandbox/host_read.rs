//! Tests the host-read view: the host's file system, read-only, with hidden and writable parts.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use ironcurtain_sandbox::{Mount, MountAccess::*, MountRefusal, SandboxEvent, Spec, UnmountProof, View};

use ironcurtain_testkit::namespace::{is_inside, run_inside};

use crate::harness::{Fixture, Probe, probe};

#[derive(Default)]
struct Lists<'a> {
    deny_read: &'a [&'a str],
    allow_read: &'a [&'a str],
    allow_write: &'a [&'a str],
    deny_write: &'a [&'a str],
}

fn spec(fixture: &Fixture, lists: &Lists<'_>) -> Spec {
    let paths = |names: &[&str]| names.iter().map(|name| fixture.path(name)).collect();
    let mut view = View::HostRead {
        session_dir: Some(fixture.path("session")),
        deny_read: paths(lists.deny_read),
        allow_read: paths(lists.allow_read),
        allow_write: paths(lists.allow_write),
        deny_write: paths(lists.deny_write),
        private_tmp: true,
    };
    view.show_program(&probe());
    Spec { view, ..fixture.spec(&[&probe()]) }
}

fn start(fixture: &Fixture, lists: &Lists<'_>) -> Probe {
    Probe::start(&spec(fixture, lists))
}

#[test]
fn host_is_readable_and_only_named_paths_are_writable() {
    let fixture = Fixture::new();
    let (plain, open, closed) =
        (fixture.file("plain"), fixture.file("open/file"), fixture.file("open/shut/file"));
    let lists = Lists { allow_write: &["open", "not-there"], deny_write: &["open/shut"], ..Lists::default() };
    let mut probe = start(&fixture, &lists);
    assert_eq!(probe.send_command(&format!("read {plain}")), "ok plain");
    assert_eq!(probe.send_command("read /etc/os-release").split(' ').next(), Some("ok"));
    for path in [&plain, &closed, "/etc/new", "/usr/new", "/new", "/sys/kernel/uevent_helper"] {
        assert_eq!(probe.send_command(&format!("write {path} x")), "err EROFS", "{path}");
    }
    for path in [&open, "new", "/tmp/new", "/dev/shm/new"] {
        assert_eq!(probe.send_command(&format!("write {path} x")), "ok", "{path}");
    }
    assert_eq!(
        probe.send_command(&format!("rename {} {}", fixture.path("open/shut"), fixture.path("open/moved"))),
        "err EBUSY"
    );
    assert_eq!(fs::read_to_string(&open).unwrap(), "x");
    assert_eq!(fs::read_to_string(&closed).unwrap(), "open/shut/file");
    assert!(!Path::new("/tmp/new").exists() || !Path::new("/tmp/new").is_file());
}

#[test]
fn denied_path_is_closed_under_every_alias() {
    let fixture = Fixture::new();
    let (secret, token) = (fixture.file("home/secret/deep/file"), fixture.file("home/token"));
    let beside = fixture.file("home/beside");
    symlink(fixture.path("home/secret"), fixture.path("link")).unwrap();
    symlink("../home/token", fixture.path("session/token")).unwrap();
    let mut probe =
        start(&fixture, &Lists { deny_read: &["link", "home/token", "not-there"], ..Lists::default() });
    for path in [&secret, &fixture.path("link/deep/file"), &fixture.path("home/secret/deep")] {
        assert_eq!(probe.send_command(&format!("read {path}")), "err EACCES", "{path}");
    }
    assert_eq!(probe.send_command(&format!("list {}", fixture.path("home/secret"))), "err EACCES");
    for path in [&token, "token", &format!("/proc/self/root{token}")] {
        assert_eq!(probe.send_command(&format!("read {path}")), "err EACCES", "{path}");
    }
    for path in [&token, &fixture.path("home/secret")] {
        assert!(probe.send_command(&format!("run chmod 777 {path}")).contains("exit status: 1"), "{path}");
        assert_ne!(probe.send_command(&format!("write {path} x")).split(' ').next(), Some("ok"), "{path}");
    }
    assert_eq!(probe.send_command(&format!("read {beside}")), "ok home/beside");
    let mut open = start(&fixture, &Lists::default());
    assert_eq!(open.send_command(&format!("read {secret}")), "ok home/secret/deep/file");
    assert_eq!(open.send_command(&format!("read {token}")), "ok home/token");
}

#[test]
fn deepest_path_wins() {
    let fixture = Fixture::new();
    let names = ["a/file", "a/open/file", "a/open/shut/file", "a/open/shut/mine/file", "a/other/file"];
    let files = names.map(|name| fixture.file(name));
    let lists = Lists {
        deny_read: &["a", "a/open/shut"],
        allow_read: &["a/open"],
        allow_write: &["a/open/shut/mine"],
        ..Lists::default()
    };
    let mut probe = start(&fixture, &lists);
    let [outer, open, shut, mine, other] = files;
    assert_eq!(probe.send_command(&format!("read {open}")), "ok a/open/file");
    assert_eq!(probe.send_command(&format!("write {open} x")), "err EROFS");
    assert_eq!(probe.send_command(&format!("write {mine} x")), "ok");
    for hidden in [&outer, &shut, &other] {
        assert_eq!(probe.send_command(&format!("exists {hidden}")), "err ENOENT", "{hidden}");
    }
    for closed in ["a", "a/open/shut"] {
        assert_eq!(probe.send_command(&format!("list {}", fixture.path(closed))), "err EACCES", "{closed}");
        assert_eq!(
            probe.send_command(&format!("write {}/new x", fixture.path(closed))),
            "err EROFS",
            "{closed}"
        );
    }
    assert_eq!(fs::read_to_string(mine).unwrap(), "x");
}

#[test]
fn denial_wins_at_the_same_path() {
    let fixture = Fixture::new();
    let file = fixture.file("a/file");
    let lists = Lists { deny_read: &["a"], allow_read: &["a"], allow_write: &["a"], ..Lists::default() };
    assert_eq!(start(&fixture, &lists).send_command(&format!("read {file}")), "err EACCES");
    let lists = Lists { allow_write: &["a", "a/b"], deny_write: &["a"], ..Lists::default() };
    let inner = fixture.file("a/b/file");
    let mut probe = start(&fixture, &lists);
    assert_eq!(probe.send_command(&format!("write {file} x")), "err EROFS");
    assert_eq!(probe.send_command(&format!("write {inner} x")), "err EROFS");
}

#[test]
fn symlink_in_an_allowed_path_is_refused() {
    let fixture = Fixture::new();
    fixture.file("secret/file");
    symlink(fixture.path("secret"), fixture.path("link")).unwrap();
    for lists in [
        Lists { allow_write: &["link"], ..Lists::default() },
        Lists { deny_read: &["secret"], allow_read: &["link"], ..Lists::default() },
    ] {
        let mut probe = Probe::launch(&spec(&fixture, &lists));
        let SandboxEvent::Failed { reason } = probe.control.event().unwrap() else { panic!("it ran") };
        let (link, real) = (fixture.path("link"), fixture.path("secret"));
        let expected = format!("`{link}` contains a symlink to `{real}`; use that path instead");
        assert_eq!(reason, expected);
    }
}

#[test]
fn repeated_grants_reveal_nothing_denied() {
    let fixture = Fixture::new();
    let (file, secret) = (fixture.file("dir/file"), fixture.file("dir/secret/file"));
    let kept = fixture.file("dir/kept/file");
    let dir = fixture.path("dir");
    let lists = Lists { deny_read: &["dir/secret"], deny_write: &["dir/kept"], ..Lists::default() };
    let mut probe = start(&fixture, &lists);
    assert_eq!(probe.send_command(&format!("write {file} x")), "err EROFS");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("write {file} x")), "ok");
    assert_eq!(probe.send_command(&format!("write {kept} x")), "err EROFS");
    assert_eq!(probe.send_command(&format!("exists {secret}")), "err EACCES");
    assert_eq!(probe.send_command(&format!("hold {file}")), "ok");
    assert_eq!(probe.remove(&dir), UnmountProof::StillOpen);
    assert_eq!(probe.send_command("let-go"), "ok");
    assert_eq!(probe.send_command(&format!("write {file} y")), "err EROFS");
    assert_eq!(probe.send_command(&format!("read {file}")), "ok x");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.send_command(&format!("exists {secret}")), "err EACCES");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("exists {secret}")), "err EACCES");
    assert_eq!(probe.send_command(&format!("write {kept} x")), "err EROFS");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {secret}")), "err EACCES");
    assert_eq!(probe.expect_refusal(&fixture.path("session"), ReadOnly), MountRefusal::Reserved);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "dir/kept/file");
}

#[test]
fn initial_grant_in_a_hidden_directory_is_mounted() {
    let fixture = Fixture::new();
    let (file, beside) = (fixture.file("home/docs/file"), fixture.file("home/beside"));
    let mut spec = spec(&fixture, &Lists { deny_read: &["home"], ..Lists::default() });
    spec.mounts = vec![Mount::new(fixture.path("home/docs"), ReadWrite)];
    let mut probe = Probe::start(&spec);
    assert_eq!(probe.send_command(&format!("write {file} x")), "ok");
    assert_eq!(probe.send_command(&format!("exists {beside}")), "err ENOENT");
    assert_eq!(probe.remove(&fixture.path("home/docs")), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("read {file}")), "err ENOENT");
    assert_eq!(probe.expect_refusal(&fixture.path("home/beside"), ReadOnly), MountRefusal::NoMountPoint);
}

#[test]
fn desktop_session_is_hidden() {
    let fixture = Fixture::new();
    let mut probe = start(&fixture, &Lists::default());
    if Path::new("/run/user").exists() {
        assert_eq!(probe.send_command("list /run/user"), "err EACCES");
    }
    for path in ["/sys/class/net", "/sys/firmware", "/sys/fs", "/sys/kernel/security"] {
        assert_eq!(probe.send_command(&format!("list {path}")), "err ENOENT", "{path}");
    }
    assert!(probe.send_command("list /sys/devices/system/cpu").contains(" online "));
    assert_eq!(probe.send_command(&format!("list {}", fixture.path("state"))), "err EACCES");
    let pids = probe.send_command("list /proc").split(' ').filter(|name| name.parse::<u32>().is_ok()).count();
    assert_eq!(pids, 2);
    // The host's `/tmp` appears empty, except for the path of a program that was built there.
    let program = crate::harness::probe();
    let way = program.strip_prefix("/tmp/").and_then(|below| below.split('/').next());
    let expected = way.map_or("ok".to_owned(), |way| format!("ok {way}"));
    assert_eq!(probe.send_command("list /tmp"), expected);
    assert_eq!(probe.send_command("fds"), "ok 0 1 2");
}

#[test]
fn another_mount_of_a_denied_directory_is_hidden() {
    if !is_inside() {
        return run_inside("host_read::another_mount_of_a_denied_directory_is_hidden", &["--mount"]);
    }
    let fixture = Fixture::new();
    for name in ["home/secret/deep/file", "home/beside", "whole/x", "part/x"] {
        fixture.file(name);
    }
    let bind = |from: &str, to: &str| {
        let run =
            Command::new("mount").args(["--bind", &fixture.path(from), &fixture.path(to)]).status().unwrap();
        assert!(run.success());
    };
    bind("home", "whole");
    bind("home/secret/deep", "part");
    let mut probe = start(&fixture, &Lists { deny_read: &["home/secret"], ..Lists::default() });
    for path in ["home/secret/deep/file", "whole/secret/deep/file", "part/file"] {
        assert_eq!(probe.send_command(&format!("read {}", fixture.path(path))), "err EACCES", "{path}");
    }
    assert_eq!(probe.send_command(&format!("read {}", fixture.path("whole/beside"))), "ok home/beside");
    let mut open = start(&fixture, &Lists::default());
    assert_eq!(open.send_command(&format!("read {}", fixture.path("part/file"))), "ok home/secret/deep/file");
    drop((probe, open));
    for path in ["whole", "part"] {
        assert!(Command::new("umount").args(["--lazy", &fixture.path(path)]).status().unwrap().success());
    }
}
