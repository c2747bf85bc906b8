//! Tests checkpoints of folders that hostile programs modify.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use ironcurtain_checkpoint::{Checkpoint, CheckpointError, Checkpoints, DifferenceKind, KEPT, MAX_BYTES};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder, its checkpoints, and a location outside the folder.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        fs::create_dir_all(place.outside("deep")).unwrap();
        fs::create_dir_all(place.inside("src/deep")).unwrap();
        fs::create_dir_all(place.inside(".git/hooks")).unwrap();
        for (path, text) in [
            ("a", "one\ntwo\n"),
            ("src/b", "b"),
            ("src/deep/c", "c"),
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/hooks/post-checkout", "#!/bin/sh\ntouch ../ran\n"),
        ] {
            fs::write(place.inside(path), text).unwrap();
        }
        symlink("a", place.inside("link")).unwrap();
        fs::set_permissions(place.inside("src/b"), Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(place.inside(".git/hooks/post-checkout"), Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.0.path().join("folder").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.0.path().join("outside").join(path)
    }

    fn all(&self) -> Checkpoints {
        Checkpoints::of(self.0.path().join("checkpoints"))
    }

    fn take(&self) -> Checkpoint {
        let mut taken = self.all().take(&self.inside("")).unwrap();
        taken.belongs_to("run").unwrap();
        taken
    }

    /// Returns the type, permissions and content of everything in the folder.
    fn content(&self) -> BTreeMap<PathBuf, (String, u32)> {
        let (mut all, mut folders) = (BTreeMap::new(), vec![self.inside("")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let found = fs::symlink_metadata(&path).unwrap();
                let text = if found.is_symlink() {
                    format!("-> {}", fs::read_link(&path).unwrap().display())
                } else if found.is_dir() {
                    folders.push(path.clone());
                    "folder".to_owned()
                } else if found.is_file() {
                    fs::read_to_string(&path).unwrap()
                } else {
                    "special".to_owned()
                };
                all.insert(path, (text, found.permissions().mode()));
            }
        }
        all
    }
}

fn kinds(checkpoint: &Checkpoint) -> Vec<(String, DifferenceKind)> {
    checkpoint.changes().unwrap().all.into_iter().map(|change| (change.path, change.kind)).collect()
}

#[test]
fn everything_that_a_run_changed_is_restored() {
    let place = Place::new();
    let before = place.content();
    let taken = place.take();
    assert!(taken.not_copied().is_empty());
    assert_eq!(kinds(&taken), []);
    fs::write(place.inside("a"), "one\n2\n").unwrap();
    fs::set_permissions(place.inside("src/b"), Permissions::from_mode(0o777)).unwrap();
    fs::remove_dir_all(place.inside("src/deep")).unwrap();
    fs::write(place.inside("src/deep"), "a file in the place of a folder").unwrap();
    fs::remove_file(place.inside("link")).unwrap();
    fs::create_dir_all(place.inside("link/new")).unwrap();
    fs::write(place.inside("link/new/file"), "new").unwrap();
    taken.finish().unwrap();
    let in_use = place.all().open("run").unwrap_err();
    assert!(matches!(in_use, CheckpointError::InUse(_)), "{in_use}");
    drop(taken);
    let opened = place.all().open("run").unwrap();
    let changes = opened.changes().unwrap();
    assert!(changes.is_finished && changes.all.iter().all(|change| !change.is_later && !change.is_in_git));
    let expected = [
        ("a", DifferenceKind::Changed),
        ("link", DifferenceKind::Changed),
        ("link/new", DifferenceKind::Created),
        ("link/new/file", DifferenceKind::Created),
        ("src/b", DifferenceKind::Changed),
        ("src/deep", DifferenceKind::Changed),
        ("src/deep/c", DifferenceKind::Removed),
    ];
    assert_eq!(kinds(&opened), expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!(opened.diff(&changes.all[0]).unwrap(), "@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    let restored = opened.restore(&changes.all).unwrap();
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    assert_eq!((restored.count, place.content()), (7, before));
    assert_eq!(kinds(&opened), []);
}

#[test]
fn no_link_leads_out_of_the_folder() {
    let place = Place::new();
    fs::write(place.outside("b"), "the user's own").unwrap();
    fs::write(place.outside("deep/c"), "the user's own").unwrap();
    symlink(place.outside(""), place.inside("to-outside")).unwrap();
    let taken = place.take();
    // The target of the symlink is neither copied nor listed.
    let copies = fs::read_dir(place.0.path().join("checkpoints/run/files")).unwrap();
    assert_eq!(copies.count(), 5);
    fs::remove_dir_all(place.inside("src")).unwrap();
    symlink(place.outside(""), place.inside("src")).unwrap();
    taken.finish().unwrap();
    let changes = taken.changes().unwrap();
    assert_eq!(changes.all[0].path, "src");
    // The comparison did not follow the link, so the files below it do not exist.
    assert_eq!(
        kinds(&taken)[1..],
        ["src/b", "src/deep", "src/deep/c"].map(|path| (path.to_owned(), DifferenceKind::Removed))
    );
    // If the link itself is not restored, restoring the paths below it fails.
    let below: Vec<_> = changes.all[1..].to_vec();
    let restored = taken.restore(&below).unwrap();
    assert_eq!((restored.count, restored.failed.len()), (0, 3));
    assert_eq!(fs::read_to_string(place.outside("b")).unwrap(), "the user's own");
    let restored = taken.restore(&changes.all).unwrap();
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    assert_eq!(fs::read_to_string(place.inside("src/deep/c")).unwrap(), "c");
    assert!(!place.inside("src").is_symlink());
    for own in ["b", "deep/c"] {
        assert_eq!(fs::read_to_string(place.outside(own)).unwrap(), "the user's own");
    }
    assert!(!place.outside(".ironcurtain-undo").exists());
    assert_eq!(fs::read_dir(place.outside("")).unwrap().count(), 2);
}

#[test]
fn later_changes_and_the_repository_are_marked() {
    let place = Place::new();
    let taken = place.take();
    fs::write(place.inside("a"), "by the run").unwrap();
    fs::write(place.inside("src/b"), "by the run").unwrap();
    fs::write(place.inside(".git/HEAD"), "by the run").unwrap();
    taken.finish().unwrap();
    fs::write(place.inside("src/b"), "by the user").unwrap();
    fs::write(place.inside("own"), "by the user").unwrap();
    // Writing the same content again does not count as a later change.
    fs::write(place.inside("a"), "by the run").unwrap();
    let changes = taken.changes().unwrap();
    let marked: Vec<_> =
        changes.all.iter().map(|change| (change.path.as_str(), change.is_later, change.is_in_git)).collect();
    assert_eq!(
        marked,
        [(".git/HEAD", false, true), ("a", false, false), ("own", true, false), ("src/b", true, false)]
    );
    // A path that changes between comparing and restoring is kept.
    fs::write(place.inside("a"), "by the user").unwrap();
    let restored = taken.restore(&changes.all[1..2]).unwrap();
    assert_eq!((restored.count, restored.failed[0].why.to_string().as_str()), (0, "it has changed again"));
    assert_eq!(fs::read_to_string(place.inside("a")).unwrap(), "by the user");
    // The repository's hooks were not run.
    let changes = taken.changes().unwrap();
    assert!(taken.restore(&changes.all).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(place.inside(".git/HEAD")).unwrap(), "ref: refs/heads/main\n");
    assert!(!place.inside("ran").exists() && !place.inside("../ran").exists());
}

#[test]
fn without_the_end_of_the_run_every_difference_may_be_later() {
    let place = Place::new();
    let taken = place.take();
    fs::write(place.inside("a"), "by somebody").unwrap();
    let changes = taken.changes().unwrap();
    assert!(!changes.is_finished && changes.all.iter().all(|change| change.is_later));
}

#[test]
fn what_cannot_be_copied_is_reported_and_never_changed() {
    let place = Place::new();
    let _socket = UnixListener::bind(place.inside("socket")).unwrap();
    let strange = place.inside("src").join(OsStr::from_bytes(b"\xff"));
    fs::write(&strange, "kept").unwrap();
    let taken = place.take();
    let mut reasons: Vec<_> =
        taken.not_copied().iter().map(|one| (one.path.as_str(), one.why.as_str())).collect();
    reasons.sort_unstable();
    let expected =
        [("socket", "it is a pipe, a socket or a device"), ("src", r"the name `\xff` in it is not UTF-8")];
    assert_eq!(reasons, expected);
    // A file that replaces the socket is not covered either, but other files are.
    fs::remove_file(place.inside("socket")).unwrap();
    fs::write(place.inside("socket"), "new").unwrap();
    fs::write(place.inside("src/b"), "new").unwrap();
    fs::write(&strange, "new").unwrap();
    fs::write(place.inside("src").join(OsStr::from_bytes(b"new\xfe")), "new").unwrap();
    taken.finish().unwrap();
    let changes = taken.changes().unwrap();
    assert_eq!(kinds(&taken), [("src/b".to_owned(), DifferenceKind::Changed)]);
    // Each name is reported once.
    let named: Vec<_> = changes.not_copied.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(changes.not_copied.len(), 3, "{named:?}");
    assert!(named.contains(&r"the name `new\xfe` in it is not UTF-8"), "{named:?}");
    assert!(taken.restore(&changes.all).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(place.inside("src/b")).unwrap(), "b");
    assert_eq!(fs::read_to_string(strange).unwrap(), "new");
}

#[test]
fn checkpoints_are_bounded() {
    let place = Place::new();
    let large = File::create(place.inside("large")).unwrap();
    large.set_len(MAX_BYTES).unwrap();
    let refused = place.all().take(&place.inside("")).unwrap_err();
    assert!(matches!(refused, CheckpointError::TooLarge(_)), "{refused}");
    assert_eq!(fs::read_dir(place.0.path().join("checkpoints")).unwrap().count(), 0);
    fs::remove_file(place.inside("large")).unwrap();
    for number in 0..KEPT + 2 {
        let mut taken = place.all().take(&place.inside("")).unwrap();
        taken.belongs_to(&format!("run{number}")).unwrap();
    }
    let kept: Vec<String> = place.all().list().unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(kept.len(), KEPT, "{kept:?}");
    assert!(!kept.contains(&"run0".to_owned()) && kept.contains(&format!("run{}", KEPT + 1)));
}

#[test]
fn only_a_checkpoint_of_the_same_folder_is_used() {
    let place = Place::new();
    let taken = place.take();
    for id in ["", "..", "../folder", "run/files", "new-run", "other"] {
        assert!(matches!(place.all().open(id), Err(CheckpointError::Unknown(_))), "{id}");
    }
    fs::rename(place.inside(""), place.0.path().join("moved")).unwrap();
    fs::create_dir(place.inside("")).unwrap();
    assert!(matches!(taken.changes(), Err(CheckpointError::OtherFolder(_))));
    fs::remove_dir(place.inside("")).unwrap();
    symlink(Path::new("moved"), place.inside("").parent().unwrap().join("folder")).unwrap();
    let linked = taken.changes().unwrap_err();
    assert!(matches!(linked, CheckpointError::Io { .. }), "{linked}");
}

#[test]
fn a_file_that_changes_while_others_are_restored_stays() {
    let place = Place::new();
    let taken = place.take();
    for path in ["a", "src/b", "src/deep/c", "new"] {
        fs::write(place.inside(path), "by the run").unwrap();
    }
    taken.finish().unwrap();
    let mut changes = taken.changes().unwrap().all;
    changes.retain(|change| change.path != "new");
    // The first file's copy is a pipe, so restoring blocks there.
    let copies = place.0.path().join("checkpoints/run/files");
    let is_first = |copy: &PathBuf| fs::read_to_string(copy).unwrap() == "one\ntwo\n";
    let first = fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().path()).find(is_first).unwrap();
    fs::remove_file(&first).unwrap();
    mknodat(CWD, &first, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let restored = std::thread::scope(|scope| {
        let restoring = scope.spawn(|| taken.restore(&changes).unwrap());
        let mut copy = fs::OpenOptions::new().write(true).open(&first).unwrap();
        fs::write(place.inside("src/b"), "by the user").unwrap();
        fs::remove_file(place.inside("src/deep/c")).unwrap();
        copy.write_all(b"one\ntwo\n").unwrap();
        drop(copy);
        restoring.join().unwrap()
    });
    let failed: Vec<_> = restored.failed.iter().map(|one| one.path.as_str()).collect();
    assert_eq!((restored.count, failed), (1, vec!["src/b", "src/deep/c"]));
    assert_eq!(fs::read_to_string(place.inside("a")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(place.inside("src/b")).unwrap(), "by the user");
    assert!(!place.inside("src/deep/c").exists());
    let left = place.content().into_keys().filter(|path| path.to_str().unwrap().contains("ironcurtain-undo"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_large_new_file_is_not_read() {
    let place = Place::new();
    let taken = place.take();
    let large = File::create(place.inside("large")).unwrap();
    large.set_len(MAX_BYTES + 1).unwrap();
    taken.finish().unwrap();
    let after = fs::read_to_string(place.0.path().join("checkpoints/run/after.json")).unwrap();
    assert!(after.contains("Large"), "{after}");
    let change = || taken.changes().unwrap().all.remove(0);
    assert_eq!((change().path.as_str(), change().is_later), ("large", false));
    large.set_len(MAX_BYTES + 2).unwrap();
    assert!(change().is_later);
}

#[test]
fn a_checkpoint_that_is_in_use_is_not_removed() {
    let place = Place::new();
    let used = place.take();
    let mut starting = place.all().take(&place.inside("")).unwrap();
    // The process is killed before the run starts.
    drop(place.all().take(&place.inside("")).unwrap());
    for number in 0..KEPT + 2 {
        place.all().take(&place.inside("")).unwrap().belongs_to(&format!("later{number}")).unwrap();
    }
    starting.belongs_to("started").unwrap();
    for taken in [&used, &starting] {
        assert!(taken.changes().unwrap().all.is_empty());
    }
    let ids: Vec<String> = place.all().list().unwrap().into_iter().map(|(id, _)| id).collect();
    assert!(ids.contains(&"run".to_owned()) && ids.contains(&"started".to_owned()), "{ids:?}");
    let all = fs::read_dir(place.0.path().join("checkpoints")).unwrap();
    assert!(
        all.map(|entry| entry.unwrap().file_name()).all(|name| !name.to_str().unwrap().starts_with("new-"))
    );
    // Once these checkpoints are no longer in use, they are removed like the others.
    drop((used, starting));
    place.all().take(&place.inside("")).unwrap().belongs_to("last").unwrap();
    assert_eq!(place.all().list().unwrap().len(), KEPT);
}
