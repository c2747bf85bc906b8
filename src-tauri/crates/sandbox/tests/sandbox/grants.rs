//! Tests that paths can be granted and revoked while the server is running.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use ironcurtain_sandbox::{ControlAnswer, ControlOp, Mount, MountAccess::*, MountRefusal, UnmountProof};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Fixture, TIMEOUT};

#[test]
fn path_is_visible_only_while_granted() {
    let fixture = Fixture::new();
    let file = fixture.file("a/b/file");
    let dir = fixture.path("a/b");
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
    assert_eq!(probe.send_command(&format!("exists {}", fixture.path("a"))), "err ENOENT");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.send_command(&format!("read {file}")), "ok a/b/file");
    assert_eq!(probe.mounts(), [Mount::new(&dir, ReadOnly)]);
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
    assert_eq!(probe.send_command(&format!("exists {}", fixture.path("a"))), "err ENOENT");
    assert_eq!(probe.mounts(), []);
    let root = "ok bin dev etc lib lib64 proc run sbin tmp usr";
    let seen = probe.send_command("list /");
    assert!(root.split(' ').all(|name| seen.contains(name)) && !seen.contains(".ironcurtain"), "{seen}");
}

#[test]
fn read_only_refuses_writes_and_read_write_permits_them() {
    let fixture = Fixture::new();
    let (kept, open) = (fixture.file("kept/file"), fixture.file("open/file"));
    let mut probe = fixture.probe();
    probe.add(&fixture.path("kept"), ReadOnly);
    probe.add(&fixture.path("open"), ReadWrite);
    assert_eq!(probe.send_command(&format!("write {kept} changed")), "err EROFS");
    assert_eq!(probe.send_command(&format!("write {kept}-new made")), "err EROFS");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept/file");
    assert_eq!(probe.send_command(&format!("write {open} changed")), "ok");
    assert_eq!(fs::read_to_string(&open).unwrap(), "changed");
    assert_eq!(probe.send_command(&format!("write {open}-new made")), "ok");
    assert_eq!(fs::read_to_string(format!("{open}-new")).unwrap(), "made");
}

#[test]
fn directory_is_refused_where_a_file_was_granted() {
    let fixture = Fixture::new();
    let (file, inner) = (fixture.file("docs/a"), fixture.file("docs/dir/inner"));
    let dir = fixture.path("docs/dir");
    let mut probe = fixture.probe();
    for access in [ReadOnly, ReadWrite] {
        assert_eq!(probe.try_add_mount(Mount::new(&dir, access).file_only()), Err(MountRefusal::Kind));
        assert_eq!(probe.send_command(&format!("exists {inner}")), "err ENOENT");
        assert_eq!(probe.try_add_mount(Mount::new(&file, access).file_only()), Ok(()));
    }
    assert_eq!(probe.send_command(&format!("write {file} changed")), "ok");
    assert_eq!(probe.try_add_mount(Mount::new(&dir, ReadOnly)), Ok(()));
    assert_eq!(probe.send_command(&format!("read {inner}")), "ok docs/dir/inner");
}

#[test]
fn swapped_file_and_folder_are_never_confused() {
    const ROUNDS: usize = 50;
    let fixture = Fixture::new();
    let (file, inner) = (fixture.file("docs/a"), fixture.file("docs/dir/inner"));
    let (dir, through) = (fixture.path("docs/dir"), format!("{file}/inner"));
    let mut probe = fixture.probe();
    let is_over = AtomicBool::new(false);
    let exchange = || renameat_with(CWD, &file, CWD, &dir, RenameFlags::EXCHANGE).unwrap();
    let (mut mounted, mut refused) = (0, 0);
    let deadline = Instant::now() + TIMEOUT;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
                exchange();
            }
        });
        while mounted < ROUNDS || refused < ROUNDS {
            assert!(Instant::now() < deadline, "{mounted} and {refused}");
            match probe.try_add_mount(Mount::new(&file, ReadOnly).file_only()) {
                Ok(()) => {
                    mounted += 1;
                    assert_eq!(probe.send_command(&format!("read {file}")), "ok docs/a");
                    assert_eq!(probe.remove(&file), UnmountProof::Proved);
                }
                Err(code) => {
                    refused += 1;
                    assert_eq!(code, MountRefusal::Kind);
                    assert_eq!(probe.send_command(&format!("exists {through}")), "err ENOENT");
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    if fs::symlink_metadata(&file).unwrap().is_dir() {
        exchange();
    }
    assert_eq!(fs::read_to_string(&inner).unwrap(), "docs/dir/inner");
}

#[test]
fn obstacles_in_private_tmp_are_distinguished_from_grants() {
    let fixture = Fixture::below(Path::new("/tmp"));
    let (file, dir) = (fixture.file("docs/a"), fixture.path("docs/dir"));
    let inner = fixture.file("docs/dir/inner");
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command(&format!("mkdir {}", fixture.path("docs"))), "ok");
    // The server creates a folder at the path of a granted file, and a file at the path of a granted folder.
    assert_eq!(probe.send_command(&format!("mkdir {file}")), "ok");
    assert_eq!(probe.send_command(&format!("write {dir} own")), "ok");
    for path in [&file, &dir] {
        assert_eq!(probe.expect_refusal(path, ReadOnly), MountRefusal::NoMountPoint, "{path}");
    }
    assert_eq!(probe.send_command(&format!("read {dir}")), "ok own");
    assert_eq!(probe.send_command(&format!("rename {dir} {dir}-own")), "ok");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.send_command(&format!("read {inner}")), "ok docs/dir/inner");
}

#[test]
fn file_is_granted_without_its_directory() {
    let fixture = Fixture::new();
    let (wanted, other) = (fixture.file("dir/wanted"), fixture.file("dir/other"));
    let mut probe = fixture.probe();
    probe.add(&wanted, ReadWrite);
    assert_eq!(probe.send_command(&format!("read {wanted}")), "ok dir/wanted");
    assert_eq!(probe.send_command(&format!("write {wanted} changed")), "ok");
    assert_eq!(fs::read_to_string(&wanted).unwrap(), "changed");
    assert_eq!(probe.send_command(&format!("exists {other}")), "err ENOENT");
    assert_eq!(probe.send_command(&format!("list {}", fixture.path("dir"))), "ok wanted");
    assert_eq!(probe.send_command(&format!("write {other} made")), "err EROFS");
    assert_eq!(probe.remove(&wanted), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {wanted}")), "err ENOENT");
    assert_eq!(probe.send_command(&format!("exists {}", fixture.path("dir"))), "err ENOENT");
}

#[test]
fn deeper_grant_keeps_its_access_in_any_order() {
    let fixture = Fixture::new();
    let (outer, inner) = (fixture.file("outer/file"), fixture.file("outer/deep/inner/file"));
    let (outer_dir, inner_dir) = (fixture.path("outer"), fixture.path("outer/deep/inner"));
    for inner_first in [true, false] {
        let mut probe = fixture.probe();
        if inner_first {
            probe.add(&inner_dir, ReadWrite);
            probe.add(&outer_dir, ReadOnly);
        } else {
            probe.add(&outer_dir, ReadOnly);
            probe.add(&inner_dir, ReadWrite);
        }
        assert_eq!(probe.send_command(&format!("write {outer} x")), "err EROFS");
        assert_eq!(probe.send_command(&format!("write {inner} x")), "ok");
        assert_eq!(probe.remove(&outer_dir), UnmountProof::Proved);
        assert_eq!(probe.send_command(&format!("exists {outer}")), "err ENOENT");
        assert_eq!(probe.send_command(&format!("write {inner} y")), "ok");
        assert_eq!(probe.remove(&inner_dir), UnmountProof::Proved);
        assert_eq!(probe.send_command(&format!("exists {outer_dir}")), "err ENOENT");
    }
}

#[test]
fn removing_the_deeper_grant_leaves_the_wider_one() {
    let fixture = Fixture::new();
    let (inner, inner_dir) = (fixture.file("outer/inner/file"), fixture.path("outer/inner"));
    let mut probe = fixture.probe();
    probe.add(&fixture.path("outer"), ReadOnly);
    probe.add(&inner_dir, ReadWrite);
    assert_eq!(probe.remove(&inner_dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("read {inner}")), "ok outer/inner/file");
    assert_eq!(probe.send_command(&format!("write {inner} x")), "err EROFS");
    assert!(Path::new(&inner).exists());
}

#[test]
fn held_file_of_a_deeper_grant_does_not_affect_the_wider_one() {
    let fixture = Fixture::new();
    let inner = fixture.file("outer/inner/file");
    fixture.file("outer/file");
    let mut probe = fixture.probe();
    probe.add(&fixture.path("outer"), ReadOnly);
    probe.add(&fixture.path("outer/inner"), ReadOnly);
    assert_eq!(probe.send_command(&format!("hold {inner}")), "ok");
    assert_eq!(probe.remove(&fixture.path("outer")), UnmountProof::Proved);
    assert_eq!(probe.send_command("read-held"), "ok outer/inner/file");
    assert_eq!(probe.send_command(&format!("read {inner}")), "ok outer/inner/file");
    assert_eq!(probe.remove(&fixture.path("outer/inner")), UnmountProof::StillOpen);
}

#[test]
fn session_directory_stays_writable_under_a_wider_grant() {
    let fixture = Fixture::new();
    let file = fixture.path("session/file");
    let other = fixture.file("other");
    let above = fixture.path("session").strip_suffix("/session").unwrap().to_owned();
    let mut probe = fixture.probe();
    probe.add(&above, ReadOnly);
    assert_eq!(probe.send_command(&format!("write {file} x")), "ok");
    assert_eq!(probe.send_command(&format!("write {other} x")), "err EROFS");
    assert_eq!(probe.remove(&above), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("read {file}")), "ok x");
    assert_eq!(probe.send_command(&format!("exists {other}")), "err ENOENT");
}

#[test]
fn add_widens_access_but_only_narrow_narrows_it() {
    let fixture = Fixture::new();
    let (file, inner) = (fixture.file("dir/file"), fixture.file("dir/inner/file"));
    let dir = fixture.path("dir");
    let mut probe = fixture.probe();
    probe.add(&dir, ReadOnly);
    probe.add(&fixture.path("dir/inner"), ReadOnly);
    assert_eq!(probe.send_command(&format!("hold {file}")), "ok");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("write {file} x")), "ok");
    assert_eq!(probe.send_command(&format!("write {inner} x")), "err EROFS");
    assert_eq!(probe.expect_refusal(&dir, ReadOnly), MountRefusal::Narrower);
    probe.add(&dir, ReadWrite);
    assert_eq!(
        probe.mounts(),
        [Mount::new(&dir, ReadWrite), Mount::new(fixture.path("dir/inner"), ReadOnly)]
    );
}

#[test]
fn replaced_path_is_mounted_again() {
    let fixture = Fixture::new();
    let file = fixture.file("file");
    let mut probe = fixture.probe();
    probe.add(&file, ReadOnly);
    fs::write(fixture.path("new"), "new").unwrap();
    fs::rename(fixture.path("new"), &file).unwrap();
    assert_eq!(probe.send_command(&format!("read {file}")), "ok file");
    probe.add(&file, ReadOnly);
    assert_eq!(probe.send_command(&format!("read {file}")), "ok new");
    fs::remove_file(&file).unwrap();
    assert_eq!(probe.remove(&file), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {file}")), "err ENOENT");

    let (dir, inside) = (fixture.path("dir"), fixture.file("dir/inside"));
    probe.add(&dir, ReadOnly);
    fs::remove_dir_all(&dir).unwrap();
    fixture.file("dir/inside");
    assert_eq!(probe.send_command(&format!("exists {inside}")), "err ENOENT");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("write {inside} x")), "ok");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
}

#[test]
fn symlink_in_the_path_is_refused() {
    let fixture = Fixture::new();
    let secret = fixture.file("secret/file");
    fixture.file("dir/file");
    let mut probe = fixture.probe();
    fs::rename(fixture.path("dir"), fixture.path("moved")).unwrap();
    symlink(fixture.path("secret"), fixture.path("dir")).unwrap();
    assert_eq!(probe.expect_refusal(&fixture.path("dir"), ReadOnly), MountRefusal::Symlink);
    assert_eq!(probe.expect_refusal(&fixture.path("dir/file"), ReadOnly), MountRefusal::Symlink);
    assert_eq!(probe.send_command(&format!("exists {secret}")), "err ENOENT");
    fs::remove_file(fixture.path("dir")).unwrap();
    fs::rename(fixture.path("moved"), fixture.path("dir")).unwrap();
    probe.add(&fixture.path("dir/file"), ReadOnly);
}

#[test]
fn each_refusal_has_its_reason() {
    let fixture = Fixture::new();
    let file = fixture.file("dir/file");
    let socket = std::os::unix::net::UnixListener::bind(fixture.path("dir/socket")).unwrap();
    let mut probe = fixture.probe();
    assert_eq!(probe.expect_refusal(&fixture.path("nothing"), ReadOnly), MountRefusal::Missing);
    assert_eq!(probe.expect_refusal(&format!("{file}/below"), ReadOnly), MountRefusal::Missing);
    assert_eq!(probe.expect_refusal(&fixture.path("dir/socket"), ReadWrite), MountRefusal::Kind);
    assert_eq!(probe.expect_refusal("relative", ReadOnly), MountRefusal::BadPath);
    assert_eq!(probe.expect_refusal("/", ReadOnly), MountRefusal::BadPath);
    assert_eq!(probe.expect_refusal(&fixture.path("dir/../dir"), ReadOnly), MountRefusal::BadPath);
    for own in ["/proc", "/proc/self", "/sys/kernel", "/dev/null", &fixture.path("session")] {
        assert_eq!(probe.expect_refusal(own, ReadOnly), MountRefusal::Reserved, "{own}");
    }
    let never = ControlOp::Remove { path: file.clone() };
    assert!(matches!(
        probe.control.request(never).unwrap(),
        ControlAnswer::Refused { code: MountRefusal::NotGranted, .. }
    ));
    probe.add(&file, ReadOnly);
    drop(socket);
}

#[test]
fn grants_leave_nothing_in_the_hosts_tree() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("dir")).unwrap();
    let mut probe = fixture.probe();
    probe.add(&fixture.path("dir"), ReadWrite);
    // The file is created after its tree was mounted.
    let file = fixture.file("other/file");
    fs::rename(fixture.path("other"), fixture.path("dir/sub")).unwrap();
    drop(file);
    probe.add(&fixture.path("dir/sub/file"), ReadOnly);
    assert_eq!(probe.remove(&fixture.path("dir/sub/file")), UnmountProof::Proved);
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::Proved);
    let names: Vec<_> = fs::read_dir(fixture.path("dir")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["sub"]);
}

#[test]
fn grant_below_host_tmp_is_mounted_in_private_tmp() {
    let fixture = Fixture::below(Path::new("/tmp"));
    let file = fixture.file("dir/file");
    let dir = fixture.path("dir");
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.send_command(&format!("read {file}")), "ok dir/file");
    assert_eq!(probe.send_command("write /tmp/own x"), "ok");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
    assert!(!Path::new("/tmp/own").exists());

    // The server owns its `/tmp`, so it can obstruct only its own grants there.
    assert_eq!(probe.send_command(&format!("symlink /usr {dir}")), "ok");
    assert_eq!(probe.expect_refusal(&dir, ReadOnly), MountRefusal::NoMountPoint);
}

#[test]
fn grant_in_a_renamed_directory_is_still_removed() {
    let fixture = Fixture::new();
    let inner = fixture.file("outer/dir/inner/file");
    let mut probe = fixture.probe();
    probe.add(&fixture.path("outer"), ReadWrite);
    probe.add(&fixture.path("outer/dir/inner"), ReadOnly);
    let renamed = format!("rename {} {}", fixture.path("outer/dir"), fixture.path("outer/hidden"));
    assert_eq!(probe.send_command(&renamed), "ok");
    assert_eq!(probe.send_command(&format!("exists {inner}")), "err ENOENT");
    assert_eq!(probe.remove(&fixture.path("outer/dir/inner")), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("write {}/hidden/inner/file x", fixture.path("outer"))), "ok");
}

#[test]
fn grants_of_the_spec_exist_when_the_server_starts() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.file("a/file"), fixture.file("b/file"));
    let mut spec = fixture.probe_spec();
    spec.mounts = vec![Mount::new(fixture.path("a"), ReadOnly), Mount::new(fixture.path("b"), ReadWrite)];
    spec.cwd = Some(fixture.path("a"));
    let mut probe = crate::harness::Probe::start(&spec);
    assert_eq!(probe.send_command("cwd"), format!("ok {}", fixture.path("a")));
    assert_eq!(probe.send_command("read file"), "ok a/file");
    assert_eq!(probe.send_command(&format!("write {a} x")), "err EROFS");
    assert_eq!(probe.send_command(&format!("write {b} x")), "ok");
    assert_eq!(probe.send_command("cd /"), "ok");
    assert_eq!(probe.remove(&fixture.path("a")), UnmountProof::Proved);
}
