//! Tests that a removed path is either proved to be unused or reported as held.

use std::{fs, process::Command};

use ironcurtain_sandbox::{MountAccess::*, UnmountProof};

use ironcurtain_testkit::namespace::{is_inside, run_inside};

use crate::harness::{Fixture, Probe};

#[test]
fn open_file_is_noticed() {
    noticed("hold");
}

#[test]
fn mapping_is_noticed() {
    noticed("map");
}

#[test]
fn descriptor_in_flight_is_noticed() {
    noticed("park");
}

#[test]
fn working_directory_is_noticed() {
    let (fixture, mut probe, file) = granted();
    assert_eq!(probe.send_command(&format!("cd {}", fixture.path("dir"))), "ok");
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::StillOpen);
    assert_eq!(probe.send_command(&format!("exists {file}")), "err ENOENT");
}

#[test]
fn file_closed_in_time_is_not_held() {
    let (fixture, mut probe, file) = granted();
    for how in ["hold", "map", "park"] {
        assert_eq!(probe.send_command(&format!("{how} {file}")), "ok");
    }
    assert_eq!(probe.send_command("let-go"), "ok");
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::Proved);
}

#[test]
fn held_path_is_unmounted_and_can_be_granted_again() {
    let (fixture, mut probe, file) = granted();
    assert_eq!(probe.send_command(&format!("hold {file}")), "ok");
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::StillOpen);
    assert_eq!(probe.send_command(&format!("exists {}", fixture.path("dir"))), "err ENOENT");
    assert_eq!(probe.send_command("read-held"), "ok dir/file");
    probe.add(&fixture.path("dir"), ReadOnly);
    assert_eq!(probe.send_command(&format!("read {file}")), "ok dir/file");
    assert_eq!(probe.send_command("let-go"), "ok");
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::Proved);
}

/// The kernel locks together mounts that existed when the sandbox started, so a tree of several mounts cannot be taken
/// apart to prove its removal. Such a tree is unmounted, but always reported as held.
#[test]
fn tree_of_several_mounts_is_complete_and_not_proved() {
    if !is_inside() {
        return run_inside(
            "removal::tree_of_several_mounts_is_complete_and_not_proved",
            &["--mount", "--propagation", "shared"],
        );
    }
    let (fixture, mut early, _) = granted();
    let (dir, below) = (fixture.path("dir"), fixture.path("dir/below"));
    fs::create_dir(&below).unwrap();
    let on = format!("mount -t tmpfs none {below} && echo on-it >{below}/inner");
    assert!(Command::new("sh").args(["-c", &on]).status().unwrap().success());
    // Later mounts on the host become visible only when the path is granted again.
    assert_eq!(early.send_command(&format!("list {below}")), "ok");
    assert_eq!(early.remove(&dir), UnmountProof::Proved);
    early.add(&dir, ReadOnly);
    assert_eq!(early.send_command(&format!("read {below}/inner")), "ok on-it");
    assert_eq!(early.remove(&dir), UnmountProof::Proved);

    let mut late = fixture.probe();
    late.add(&dir, ReadOnly);
    assert_eq!(late.send_command(&format!("read {below}/inner")), "ok on-it");
    assert_eq!(late.send_command(&format!("write {below}/inner x")), "err EROFS");
    assert_eq!(late.remove(&dir), UnmountProof::StillOpen);
    assert_eq!(late.send_command(&format!("exists {dir}")), "err ENOENT");
    drop((early, late));
    assert!(Command::new("umount").args(["--lazy", &below]).status().unwrap().success());
}

/// Checks that removing a file is reported as held while the file is in use, and as proved otherwise.
fn noticed(how: &str) {
    let (fixture, mut probe, file) = granted();
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::Proved);
    probe.add(&fixture.path("dir"), ReadOnly);
    assert_eq!(probe.send_command(&format!("{how} {file}")), "ok");
    assert_eq!(probe.remove(&fixture.path("dir")), UnmountProof::StillOpen);
    assert_eq!(probe.send_command(&format!("exists {file}")), "err ENOENT");
}

fn granted() -> (Fixture, Probe, String) {
    let fixture = Fixture::new();
    let file = fixture.file("dir/file");
    let mut probe = fixture.probe();
    probe.add(&fixture.path("dir"), ReadOnly);
    (fixture, probe, file)
}
