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

use crate::harness::{Place, TIMEOUT};

#[test]
fn path_is_visible_only_while_granted() {
    let place = Place::new();
    let file = place.file("a/b/file");
    let dir = place.path("a/b");
    let mut probe = place.probe();
    assert_eq!(probe.say(&format!("exists {dir}")), "err ENOENT");
    assert_eq!(probe.say(&format!("exists {}", place.path("a"))), "err ENOENT");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.say(&format!("read {file}")), "ok a/b/file");
    assert_eq!(probe.mounts(), [Mount::new(&dir, ReadOnly)]);
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("exists {dir}")), "err ENOENT");
    assert_eq!(probe.say(&format!("exists {}", place.path("a"))), "err ENOENT");
    assert_eq!(probe.mounts(), []);
    let root = "ok bin dev etc lib lib64 proc run sbin tmp usr";
    let seen = probe.say("list /");
    assert!(root.split(' ').all(|name| seen.contains(name)) && !seen.contains(".ironcurtain"), "{seen}");
}

#[test]
fn read_only_refuses_writes_and_read_write_permits_them() {
    let place = Place::new();
    let (kept, open) = (place.file("kept/file"), place.file("open/file"));
    let mut probe = place.probe();
    probe.add(&place.path("kept"), ReadOnly);
    probe.add(&place.path("open"), ReadWrite);
    assert_eq!(probe.say(&format!("write {kept} changed")), "err EROFS");
    assert_eq!(probe.say(&format!("write {kept}-new made")), "err EROFS");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept/file");
    assert_eq!(probe.say(&format!("write {open} changed")), "ok");
    assert_eq!(fs::read_to_string(&open).unwrap(), "changed");
    assert_eq!(probe.say(&format!("write {open}-new made")), "ok");
    assert_eq!(fs::read_to_string(format!("{open}-new")).unwrap(), "made");
}

#[test]
fn directory_is_refused_where_a_file_was_granted() {
    let place = Place::new();
    let (file, inner) = (place.file("docs/a"), place.file("docs/dir/inner"));
    let dir = place.path("docs/dir");
    let mut probe = place.probe();
    for access in [ReadOnly, ReadWrite] {
        assert_eq!(probe.asked(Mount::new(&dir, access).of_file()), Err(MountRefusal::Kind));
        assert_eq!(probe.say(&format!("exists {inner}")), "err ENOENT");
        assert_eq!(probe.asked(Mount::new(&file, access).of_file()), Ok(()));
    }
    assert_eq!(probe.say(&format!("write {file} changed")), "ok");
    assert_eq!(probe.asked(Mount::new(&dir, ReadOnly)), Ok(()));
    assert_eq!(probe.say(&format!("read {inner}")), "ok docs/dir/inner");
}

#[test]
fn swapped_file_and_folder_are_never_confused() {
    const ROUNDS: usize = 50;
    let place = Place::new();
    let (file, inner) = (place.file("docs/a"), place.file("docs/dir/inner"));
    let (dir, through) = (place.path("docs/dir"), format!("{file}/inner"));
    let mut probe = place.probe();
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
            match probe.asked(Mount::new(&file, ReadOnly).of_file()) {
                Ok(()) => {
                    mounted += 1;
                    assert_eq!(probe.say(&format!("read {file}")), "ok docs/a");
                    assert_eq!(probe.remove(&file), UnmountProof::Proved);
                }
                Err(code) => {
                    refused += 1;
                    assert_eq!(code, MountRefusal::Kind);
                    assert_eq!(probe.say(&format!("exists {through}")), "err ENOENT");
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
    let place = Place::below(Path::new("/tmp"));
    let (file, dir) = (place.file("docs/a"), place.path("docs/dir"));
    let inner = place.file("docs/dir/inner");
    let mut probe = place.probe();
    assert_eq!(probe.say(&format!("mkdir {}", place.path("docs"))), "ok");
    // The server creates a folder at the path of a granted file, and a file at the path of a granted folder.
    assert_eq!(probe.say(&format!("mkdir {file}")), "ok");
    assert_eq!(probe.say(&format!("write {dir} own")), "ok");
    for path in [&file, &dir] {
        assert_eq!(probe.refused(path, ReadOnly), MountRefusal::NoMountPoint, "{path}");
    }
    assert_eq!(probe.say(&format!("read {dir}")), "ok own");
    assert_eq!(probe.say(&format!("rename {dir} {dir}-own")), "ok");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.say(&format!("read {inner}")), "ok docs/dir/inner");
}

#[test]
fn file_is_granted_without_its_directory() {
    let place = Place::new();
    let (wanted, other) = (place.file("dir/wanted"), place.file("dir/other"));
    let mut probe = place.probe();
    probe.add(&wanted, ReadWrite);
    assert_eq!(probe.say(&format!("read {wanted}")), "ok dir/wanted");
    assert_eq!(probe.say(&format!("write {wanted} changed")), "ok");
    assert_eq!(fs::read_to_string(&wanted).unwrap(), "changed");
    assert_eq!(probe.say(&format!("exists {other}")), "err ENOENT");
    assert_eq!(probe.say(&format!("list {}", place.path("dir"))), "ok wanted");
    assert_eq!(probe.say(&format!("write {other} made")), "err EROFS");
    assert_eq!(probe.remove(&wanted), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("exists {wanted}")), "err ENOENT");
    assert_eq!(probe.say(&format!("exists {}", place.path("dir"))), "err ENOENT");
}

#[test]
fn deeper_grant_keeps_its_access_in_any_order() {
    let place = Place::new();
    let (outer, inner) = (place.file("outer/file"), place.file("outer/deep/inner/file"));
    let (outer_dir, inner_dir) = (place.path("outer"), place.path("outer/deep/inner"));
    for inner_first in [true, false] {
        let mut probe = place.probe();
        if inner_first {
            probe.add(&inner_dir, ReadWrite);
            probe.add(&outer_dir, ReadOnly);
        } else {
            probe.add(&outer_dir, ReadOnly);
            probe.add(&inner_dir, ReadWrite);
        }
        assert_eq!(probe.say(&format!("write {outer} x")), "err EROFS");
        assert_eq!(probe.say(&format!("write {inner} x")), "ok");
        assert_eq!(probe.remove(&outer_dir), UnmountProof::Proved);
        assert_eq!(probe.say(&format!("exists {outer}")), "err ENOENT");
        assert_eq!(probe.say(&format!("write {inner} y")), "ok");
        assert_eq!(probe.remove(&inner_dir), UnmountProof::Proved);
        assert_eq!(probe.say(&format!("exists {outer_dir}")), "err ENOENT");
    }
}

#[test]
fn removing_the_deeper_grant_leaves_the_wider_one() {
    let place = Place::new();
    let (inner, inner_dir) = (place.file("outer/inner/file"), place.path("outer/inner"));
    let mut probe = place.probe();
    probe.add(&place.path("outer"), ReadOnly);
    probe.add(&inner_dir, ReadWrite);
    assert_eq!(probe.remove(&inner_dir), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("read {inner}")), "ok outer/inner/file");
    assert_eq!(probe.say(&format!("write {inner} x")), "err EROFS");
    assert!(Path::new(&inner).exists());
}

#[test]
fn held_file_of_a_deeper_grant_does_not_affect_the_wider_one() {
    let place = Place::new();
    let inner = place.file("outer/inner/file");
    place.file("outer/file");
    let mut probe = place.probe();
    probe.add(&place.path("outer"), ReadOnly);
    probe.add(&place.path("outer/inner"), ReadOnly);
    assert_eq!(probe.say(&format!("hold {inner}")), "ok");
    assert_eq!(probe.remove(&place.path("outer")), UnmountProof::Proved);
    assert_eq!(probe.say("read-held"), "ok outer/inner/file");
    assert_eq!(probe.say(&format!("read {inner}")), "ok outer/inner/file");
    assert_eq!(probe.remove(&place.path("outer/inner")), UnmountProof::Held);
}

#[test]
fn session_directory_stays_writable_under_a_wider_grant() {
    let place = Place::new();
    let file = place.path("session/file");
    let other = place.file("other");
    let above = place.path("session").strip_suffix("/session").unwrap().to_owned();
    let mut probe = place.probe();
    probe.add(&above, ReadOnly);
    assert_eq!(probe.say(&format!("write {file} x")), "ok");
    assert_eq!(probe.say(&format!("write {other} x")), "err EROFS");
    assert_eq!(probe.remove(&above), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("read {file}")), "ok x");
    assert_eq!(probe.say(&format!("exists {other}")), "err ENOENT");
}

#[test]
fn add_widens_access_but_only_narrow_narrows_it() {
    let place = Place::new();
    let (file, inner) = (place.file("dir/file"), place.file("dir/inner/file"));
    let dir = place.path("dir");
    let mut probe = place.probe();
    probe.add(&dir, ReadOnly);
    probe.add(&place.path("dir/inner"), ReadOnly);
    assert_eq!(probe.say(&format!("hold {file}")), "ok");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.say(&format!("write {file} x")), "ok");
    assert_eq!(probe.say(&format!("write {inner} x")), "err EROFS");
    assert_eq!(probe.refused(&dir, ReadOnly), MountRefusal::Narrower);
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.mounts(), [Mount::new(&dir, ReadWrite), Mount::new(place.path("dir/inner"), ReadOnly)]);
}

#[test]
fn replaced_path_is_mounted_again() {
    let place = Place::new();
    let file = place.file("file");
    let mut probe = place.probe();
    probe.add(&file, ReadOnly);
    fs::write(place.path("new"), "new").unwrap();
    fs::rename(place.path("new"), &file).unwrap();
    assert_eq!(probe.say(&format!("read {file}")), "ok file");
    probe.add(&file, ReadOnly);
    assert_eq!(probe.say(&format!("read {file}")), "ok new");
    fs::remove_file(&file).unwrap();
    assert_eq!(probe.remove(&file), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("exists {file}")), "err ENOENT");

    let (dir, inside) = (place.path("dir"), place.file("dir/inside"));
    probe.add(&dir, ReadOnly);
    fs::remove_dir_all(&dir).unwrap();
    place.file("dir/inside");
    assert_eq!(probe.say(&format!("exists {inside}")), "err ENOENT");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.say(&format!("write {inside} x")), "ok");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("exists {dir}")), "err ENOENT");
}

#[test]
fn symlink_in_the_path_is_refused() {
    let place = Place::new();
    let secret = place.file("secret/file");
    place.file("dir/file");
    let mut probe = place.probe();
    fs::rename(place.path("dir"), place.path("moved")).unwrap();
    symlink(place.path("secret"), place.path("dir")).unwrap();
    assert_eq!(probe.refused(&place.path("dir"), ReadOnly), MountRefusal::Symlink);
    assert_eq!(probe.refused(&place.path("dir/file"), ReadOnly), MountRefusal::Symlink);
    assert_eq!(probe.say(&format!("exists {secret}")), "err ENOENT");
    fs::remove_file(place.path("dir")).unwrap();
    fs::rename(place.path("moved"), place.path("dir")).unwrap();
    probe.add(&place.path("dir/file"), ReadOnly);
}

#[test]
fn each_refusal_has_its_reason() {
    let place = Place::new();
    let file = place.file("dir/file");
    let socket = std::os::unix::net::UnixListener::bind(place.path("dir/socket")).unwrap();
    let mut probe = place.probe();
    assert_eq!(probe.refused(&place.path("nothing"), ReadOnly), MountRefusal::Missing);
    assert_eq!(probe.refused(&format!("{file}/below"), ReadOnly), MountRefusal::Missing);
    assert_eq!(probe.refused(&place.path("dir/socket"), ReadWrite), MountRefusal::Kind);
    assert_eq!(probe.refused("relative", ReadOnly), MountRefusal::BadPath);
    assert_eq!(probe.refused("/", ReadOnly), MountRefusal::BadPath);
    assert_eq!(probe.refused(&place.path("dir/../dir"), ReadOnly), MountRefusal::BadPath);
    for own in ["/proc", "/proc/self", "/sys/kernel", "/dev/null", &place.path("session")] {
        assert_eq!(probe.refused(own, ReadOnly), MountRefusal::Reserved, "{own}");
    }
    let never = ControlOp::Remove { path: file.clone() };
    assert!(matches!(
        probe.control.ask(never).unwrap(),
        ControlAnswer::Refused { code: MountRefusal::NotGranted, .. }
    ));
    probe.add(&file, ReadOnly);
    drop(socket);
}

#[test]
fn grants_leave_nothing_in_the_hosts_tree() {
    let place = Place::new();
    fs::create_dir_all(place.path("dir")).unwrap();
    let mut probe = place.probe();
    probe.add(&place.path("dir"), ReadWrite);
    // The file is created after its tree was mounted.
    let file = place.file("other/file");
    fs::rename(place.path("other"), place.path("dir/sub")).unwrap();
    drop(file);
    probe.add(&place.path("dir/sub/file"), ReadOnly);
    assert_eq!(probe.remove(&place.path("dir/sub/file")), UnmountProof::Proved);
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Proved);
    let names: Vec<_> = fs::read_dir(place.path("dir")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["sub"]);
}

#[test]
fn grant_below_host_tmp_is_mounted_in_private_tmp() {
    let place = Place::below(Path::new("/tmp"));
    let file = place.file("dir/file");
    let dir = place.path("dir");
    let mut probe = place.probe();
    assert_eq!(probe.say(&format!("exists {dir}")), "err ENOENT");
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.say(&format!("read {file}")), "ok dir/file");
    assert_eq!(probe.say("write /tmp/own x"), "ok");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("exists {dir}")), "err ENOENT");
    assert!(!Path::new("/tmp/own").exists());

    // The server owns its `/tmp`, so it can obstruct only its own grants there.
    assert_eq!(probe.say(&format!("symlink /usr {dir}")), "ok");
    assert_eq!(probe.refused(&dir, ReadOnly), MountRefusal::NoMountPoint);
}

#[test]
fn grant_in_a_renamed_directory_is_still_removed() {
    let place = Place::new();
    let inner = place.file("outer/dir/inner/file");
    let mut probe = place.probe();
    probe.add(&place.path("outer"), ReadWrite);
    probe.add(&place.path("outer/dir/inner"), ReadOnly);
    let renamed = format!("rename {} {}", place.path("outer/dir"), place.path("outer/hidden"));
    assert_eq!(probe.say(&renamed), "ok");
    assert_eq!(probe.say(&format!("exists {inner}")), "err ENOENT");
    assert_eq!(probe.remove(&place.path("outer/dir/inner")), UnmountProof::Proved);
    assert_eq!(probe.say(&format!("write {}/hidden/inner/file x", place.path("outer"))), "ok");
}

#[test]
fn grants_of_the_spec_exist_when_the_server_starts() {
    let place = Place::new();
    let (a, b) = (place.file("a/file"), place.file("b/file"));
    let mut spec = place.probe_spec();
    spec.mounts = vec![Mount::new(place.path("a"), ReadOnly), Mount::new(place.path("b"), ReadWrite)];
    spec.cwd = Some(place.path("a"));
    let mut probe = crate::harness::Probe::start(&spec);
    assert_eq!(probe.say("cwd"), format!("ok {}", place.path("a")));
    assert_eq!(probe.say("read file"), "ok a/file");
    assert_eq!(probe.say(&format!("write {a} x")), "err EROFS");
    assert_eq!(probe.say(&format!("write {b} x")), "ok");
    assert_eq!(probe.say("cd /"), "ok");
    assert_eq!(probe.remove(&place.path("a")), UnmountProof::Proved);
}
