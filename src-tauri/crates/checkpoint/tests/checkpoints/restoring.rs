//! Tests what is restored and what stays: objects of repositories, unreadable paths, groups and damaged copies.

use super::Fixture;
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

#[test]
fn objects_that_the_run_created_stay_because_later_commits_may_need_them() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.inside(".git/objects/ab")).unwrap();
    fs::create_dir_all(fixture.inside(".git/refs/heads")).unwrap();
    fs::create_dir_all(fixture.inside(".hg/store")).unwrap();
    let taken = fixture.take();
    for path in
        [".git/objects/ab/cd", ".git/refs/heads/objects", ".hg/store/x", "objects", "bare.git/objects/ef"]
    {
        fs::create_dir_all(fixture.inside(path).parent().unwrap()).unwrap();
        fs::write(fixture.inside(path), "by the run").unwrap();
    }
    taken.finish().unwrap();
    let changes = taken.changes().unwrap();
    let marked: Vec<_> =
        changes.all.iter().map(|change| (change.path.as_str(), change.is_in_repository)).collect();
    let expected = [
        (".git/refs/heads/objects", true),
        (".hg/store/x", true),
        ("bare.git", false),
        ("bare.git/objects", false),
        ("bare.git/objects/ef", false),
        ("objects", false),
    ];
    assert_eq!(marked, expected, "a repository that the run created is removed as a whole");
    assert_eq!(changes.kept_objects, 1);
    // The user commits to the repository that the run created.
    fs::write(fixture.inside("bare.git/HEAD"), "by the user").unwrap();
    let changes = taken.changes().unwrap();
    let paths: Vec<_> = changes.all.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, [".git/refs/heads/objects", ".hg/store/x", "bare.git", "bare.git/HEAD", "objects"]);
    assert_eq!(changes.kept_objects, 3);
}

/// Takes away the privilege of root to access every file.
fn become_an_ordinary_owner() {
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_run_cannot_prevent_restoring_by_making_paths_unreadable() {
    become_an_ordinary_owner();
    let fixture = Fixture::new();
    let taken = fixture.take();
    fs::write(fixture.inside("a"), "by the run").unwrap();
    fs::write(fixture.inside("src/deep/c"), "by the run").unwrap();
    fs::remove_file(fixture.inside("link")).unwrap();
    symlink(OsStr::from_bytes(b"\xff"), fixture.inside("link")).unwrap();
    for path in ["a", "src"] {
        fs::set_permissions(fixture.inside(path), Permissions::from_mode(0o000)).unwrap();
    }
    assert!(fs::read(fixture.inside("a")).is_err() && fs::read_dir(fixture.inside("src")).is_err());
    taken.finish().unwrap();
    let changes = taken.changes().unwrap();
    let marked: Vec<_> = changes.all.iter().map(|change| (change.path.as_str(), change.is_later)).collect();
    assert_eq!(marked, [("a", false), ("link", false), ("src", false)]);
    let uncovered: Vec<_> = changes.not_copied.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(uncovered, ["src"], "its content is unknown");
    let restored = taken.restore(&changes.all).unwrap();
    assert!(restored.failed.is_empty() && restored.count == 3, "{restored:?}");
    assert_eq!(fs::read_to_string(fixture.inside("a")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_link(fixture.inside("link")).unwrap(), Path::new("a"));
    // The content of the folder can be compared now. It is unknown whether the run made the changes.
    let changes = taken.changes().unwrap();
    let marked: Vec<_> = changes.all.iter().map(|change| (change.path.as_str(), change.is_later)).collect();
    assert_eq!(marked, [("src/deep/c", true)]);
    assert!(taken.restore(&changes.all).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(fixture.inside("src/deep/c")).unwrap(), "c");

    // Content is restored in a folder that the run made read-only.
    fs::write(fixture.inside("src/b"), "by the run").unwrap();
    fs::set_permissions(fixture.inside("src"), Permissions::from_mode(0o555)).unwrap();
    let changes = taken.changes().unwrap();
    let restored = taken.restore(&changes.all).unwrap();
    assert!(restored.failed.is_empty() && restored.count == 2, "{restored:?}");
    assert_eq!(fs::read_to_string(fixture.inside("src/b")).unwrap(), "b");
    assert_eq!(fs::metadata(fixture.inside("src")).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_restored_file_keeps_its_group_or_gives_no_group_access() {
    // Only root can create a file of a group to which it does not belong.
    let group = if getuid().is_root() { 54_321 } else { getgid().as_raw() };
    let fixture = Fixture::new();
    chown(fixture.inside("src/b"), None, Some(group)).unwrap();
    fs::set_permissions(fixture.inside("src/b"), Permissions::from_mode(0o2640)).unwrap();
    let taken = fixture.take();
    let restored = || {
        fs::write(fixture.inside("src/b"), "by the run").unwrap();
        assert!(taken.restore(&taken.changes().unwrap().all).unwrap().failed.is_empty());
        let metadata = fs::metadata(fixture.inside("src/b")).unwrap();
        (metadata.gid(), metadata.mode() & 0o7777)
    };
    assert_eq!(restored(), (group, 0o2640));
    if getuid().is_root() {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::CHOWN);
        set_capabilities(None, sets).unwrap();
        assert_eq!(restored(), (getgid().as_raw(), 0o600));
    }
}

#[test]
fn a_damaged_copy_is_not_restored() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    fs::write(fixture.inside("a"), "by the run").unwrap();
    taken.finish().unwrap();
    for copy in fs::read_dir(fixture.0.path().join("checkpoints/run/files")).unwrap() {
        fs::write(copy.unwrap().path(), "").unwrap();
    }
    let restored = taken.restore(&taken.changes().unwrap().all).unwrap();
    assert_eq!(restored.failed[0].why.to_string(), "its copy in the checkpoint is damaged");
    assert_eq!(fs::read_to_string(fixture.inside("a")).unwrap(), "by the run");
    assert_eq!(fs::read_dir(fixture.inside("")).unwrap().count(), 4, "no temporary file is left");
}
