//! Tests that a removed path is either proved to be unused or reported as held.

use std::{fs, process::Command};

use ironcurtain_sandbox::{MountAccess::*, UnmountProof};

use ironcurtain_testkit::namespace::{is_inside, run_inside};

use crate::harness::{Place, Probe};

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
    let (place, mut probe, file) = granted();
    assert_eq!(probe.say(&format!("cd {}", place.path("dir"))), "ok");
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Held);
    assert_eq!(probe.say(&format!("exists {file}")), "err ENOENT");
}

#[test]
fn file_closed_in_time_is_not_held() {
    let (place, mut probe, file) = granted();
    for how in ["hold", "map", "park"] {
        assert_eq!(probe.say(&format!("{how} {file}")), "ok");
    }
    assert_eq!(probe.say("let-go"), "ok");
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Proved);
}

#[test]
fn held_path_is_unmounted_and_can_be_granted_again() {
    let (place, mut probe, file) = granted();
    assert_eq!(probe.say(&format!("hold {file}")), "ok");
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Held);
    assert_eq!(probe.say(&format!("exists {}", place.path("dir"))), "err ENOENT");
    assert_eq!(probe.say("read-held"), "ok dir/file");
    probe.add(&place.path("dir"), ReadOnly);
    assert_eq!(probe.say(&format!("read {file}")), "ok dir/file");
    assert_eq!(probe.say("let-go"), "ok");
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Proved);
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
    let (place, mut early, _) = granted();
    let (dir, below) = (place.path("dir"), place.path("dir/below"));
    fs::create_dir(&below).unwrap();
    let on = format!("mount -t tmpfs none {below} && echo on-it >{below}/inner");
    assert!(Command::new("sh").args(["-c", &on]).status().unwrap().success());
    // Later mounts on the host become visible only when the path is granted again.
    assert_eq!(early.say(&format!("list {below}")), "ok");
    assert_eq!(early.remove(&dir), UnmountProof::Proved);
    early.add(&dir, ReadOnly);
    assert_eq!(early.say(&format!("read {below}/inner")), "ok on-it");
    assert_eq!(early.remove(&dir), UnmountProof::Proved);

    let mut late = place.probe();
    late.add(&dir, ReadOnly);
    assert_eq!(late.say(&format!("read {below}/inner")), "ok on-it");
    assert_eq!(late.say(&format!("write {below}/inner x")), "err EROFS");
    assert_eq!(late.remove(&dir), UnmountProof::Held);
    assert_eq!(late.say(&format!("exists {dir}")), "err ENOENT");
    drop((early, late));
    assert!(Command::new("umount").args(["--lazy", &below]).status().unwrap().success());
}

/// Checks that removing a file is reported as held while the file is in use, and as proved otherwise.
fn noticed(how: &str) {
    let (place, mut probe, file) = granted();
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Proved);
    probe.add(&place.path("dir"), ReadOnly);
    assert_eq!(probe.say(&format!("{how} {file}")), "ok");
    assert_eq!(probe.remove(&place.path("dir")), UnmountProof::Held);
    assert_eq!(probe.say(&format!("exists {file}")), "err ENOENT");
}

fn granted() -> (Place, Probe, String) {
    let place = Place::new();
    let file = place.file("dir/file");
    let mut probe = place.probe();
    probe.add(&place.path("dir"), ReadOnly);
    (place, probe, file)
}
