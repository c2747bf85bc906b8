//! Tests checkpoints of folders that hostile programs modify.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod restoring;

use ironcurtain_checkpoint::{
    Checkpoint, CheckpointError, Checkpoints, DifferenceKind, MAX_BYTES, MAX_CHECKPOINTS,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Seek, Write};
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// A folder, its checkpoints, and a location outside the folder.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        let fixture = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        fs::create_dir_all(fixture.outside("deep")).unwrap();
        fs::create_dir_all(fixture.inside("src/deep")).unwrap();
        fs::create_dir_all(fixture.inside(".git/hooks")).unwrap();
        for (path, text) in [
            ("a", "one\ntwo\n"),
            ("src/b", "b"),
            ("src/deep/c", "c"),
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/hooks/post-checkout", "#!/bin/sh\ntouch ../ran\n"),
        ] {
            fs::write(fixture.inside(path), text).unwrap();
        }
        symlink("a", fixture.inside("link")).unwrap();
        fs::set_permissions(fixture.inside("src/b"), Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(fixture.inside(".git/hooks/post-checkout"), Permissions::from_mode(0o755))
            .unwrap();
        fixture
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.0.path().join("folder").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.0.path().join("outside").join(path)
    }

    fn all(&self) -> Checkpoints {
        Checkpoints::new(self.0.path().join("checkpoints"))
    }

    fn take(&self) -> Checkpoint {
        let mut taken = self.all().create(&self.inside("")).unwrap();
        taken.assign_to_run("run").unwrap();
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
fn file_that_keeps_changing_while_it_is_copied_is_not_covered() {
    let fixture = Fixture::new();
    let mut file = File::create(fixture.inside("log")).unwrap();
    file.set_len(32 << 20).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let writing = thread::spawn({
        let is_done = is_done.clone();
        move || {
            while !is_done.load(Ordering::Relaxed) {
                file.write_all(b"x").unwrap();
                file.rewind().unwrap();
            }
        }
    });
    let why = || {
        let taken = fixture.all().create(&fixture.inside("")).unwrap();
        let why = taken.not_copied().first().map(|one| one.why.clone());
        taken.remove().unwrap();
        why
    };
    // The system may suspend the writing thread while the file is copied.
    let found = iter::repeat_with(why).take(100).flatten().next();
    is_done.store(true, Ordering::Relaxed);
    writing.join().unwrap();
    assert_eq!(found.as_deref(), Some("it kept changing while it was copied"));
    assert_eq!(why(), None);
}

#[test]
fn everything_that_a_run_changed_is_restored() {
    let fixture = Fixture::new();
    let before = fixture.content();
    let taken = fixture.take();
    assert!(taken.not_copied().is_empty());
    assert_eq!(kinds(&taken), []);
    fs::write(fixture.inside("a"), "one\n2\n").unwrap();
    fs::set_permissions(fixture.inside("src/b"), Permissions::from_mode(0o777)).unwrap();
    fs::remove_dir_all(fixture.inside("src/deep")).unwrap();
    fs::write(fixture.inside("src/deep"), "a file in the place of a folder").unwrap();
    fs::remove_file(fixture.inside("link")).unwrap();
    fs::create_dir_all(fixture.inside("link/new")).unwrap();
    fs::write(fixture.inside("link/new/file"), "new").unwrap();
    taken.finish().unwrap();
    let in_use = fixture.all().open("run").unwrap_err();
    assert!(matches!(in_use, CheckpointError::InUse(_)), "{in_use}");
    drop(taken);
    let opened = fixture.all().open("run").unwrap();
    let changes = opened.changes().unwrap();
    assert!(
        changes.is_finished && changes.all.iter().all(|change| !change.is_later && !change.is_in_repository)
    );
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
    assert_eq!((restored.count, fixture.content()), (7, before));
    assert_eq!(kinds(&opened), []);
}

#[test]
fn no_link_leads_out_of_the_folder() {
    let fixture = Fixture::new();
    fs::write(fixture.outside("b"), "the user's own").unwrap();
    fs::write(fixture.outside("deep/c"), "the user's own").unwrap();
    symlink(fixture.outside(""), fixture.inside("to-outside")).unwrap();
    let taken = fixture.take();
    // The target of the symlink is neither copied nor listed.
    let copies = fs::read_dir(fixture.0.path().join("checkpoints/run/files")).unwrap();
    assert_eq!(copies.count(), 5);
    fs::remove_dir_all(fixture.inside("src")).unwrap();
    symlink(fixture.outside(""), fixture.inside("src")).unwrap();
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
    assert_eq!(fs::read_to_string(fixture.outside("b")).unwrap(), "the user's own");
    let restored = taken.restore(&changes.all).unwrap();
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    assert_eq!(fs::read_to_string(fixture.inside("src/deep/c")).unwrap(), "c");
    assert!(!fixture.inside("src").is_symlink());
    for own in ["b", "deep/c"] {
        assert_eq!(fs::read_to_string(fixture.outside(own)).unwrap(), "the user's own");
    }
    assert!(!fixture.outside(".ironcurtain-undo").exists());
    assert_eq!(fs::read_dir(fixture.outside("")).unwrap().count(), 2);
}

#[test]
fn later_changes_and_the_repository_are_marked() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    fs::write(fixture.inside("a"), "by the run").unwrap();
    fs::write(fixture.inside("src/b"), "by the run").unwrap();
    fs::write(fixture.inside(".git/HEAD"), "by the run").unwrap();
    taken.finish().unwrap();
    fs::write(fixture.inside("src/b"), "by the user").unwrap();
    fs::write(fixture.inside("own"), "by the user").unwrap();
    // Writing the same content again does not count as a later change.
    fs::write(fixture.inside("a"), "by the run").unwrap();
    let changes = taken.changes().unwrap();
    let marked: Vec<_> = changes
        .all
        .iter()
        .map(|change| (change.path.as_str(), change.is_later, change.is_in_repository))
        .collect();
    assert_eq!(
        marked,
        [(".git/HEAD", false, true), ("a", false, false), ("own", true, false), ("src/b", true, false)]
    );
    // A path that changes between comparing and restoring is kept.
    fs::write(fixture.inside("a"), "by the user").unwrap();
    let restored = taken.restore(&changes.all[1..2]).unwrap();
    assert_eq!((restored.count, restored.failed[0].why.to_string().as_str()), (0, "it has changed again"));
    assert_eq!(fs::read_to_string(fixture.inside("a")).unwrap(), "by the user");
    // The repository's hooks were not run.
    let changes = taken.changes().unwrap();
    assert!(taken.restore(&changes.all).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(fixture.inside(".git/HEAD")).unwrap(), "ref: refs/heads/main\n");
    assert!(!fixture.inside("ran").exists() && !fixture.inside("../ran").exists());
}

#[test]
fn without_the_end_of_the_run_every_difference_may_be_later() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    fs::write(fixture.inside("a"), "by somebody").unwrap();
    let changes = taken.changes().unwrap();
    assert!(!changes.is_finished && changes.all.iter().all(|change| change.is_later));
}

#[test]
fn what_cannot_be_copied_is_reported_and_never_changed() {
    let fixture = Fixture::new();
    let _socket = UnixListener::bind(fixture.inside("socket")).unwrap();
    let strange = fixture.inside("src").join(OsStr::from_bytes(b"\xff"));
    fs::write(&strange, "kept").unwrap();
    let taken = fixture.take();
    let mut reasons: Vec<_> =
        taken.not_copied().iter().map(|one| (one.path.as_str(), one.why.as_str())).collect();
    reasons.sort_unstable();
    let expected =
        [("socket", "it is a pipe, a socket or a device"), ("src", r"the name `\xff` in it is not UTF-8")];
    assert_eq!(reasons, expected);
    // A file that replaces the socket is not covered either, but other files are.
    fs::remove_file(fixture.inside("socket")).unwrap();
    fs::write(fixture.inside("socket"), "new").unwrap();
    fs::write(fixture.inside("src/b"), "new").unwrap();
    fs::write(&strange, "new").unwrap();
    fs::write(fixture.inside("src").join(OsStr::from_bytes(b"new\xfe")), "new").unwrap();
    taken.finish().unwrap();
    let changes = taken.changes().unwrap();
    assert_eq!(kinds(&taken), [("src/b".to_owned(), DifferenceKind::Changed)]);
    // Each name is reported once.
    let named: Vec<_> = changes.not_copied.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(changes.not_copied.len(), 3, "{named:?}");
    assert!(named.contains(&r"the name `new\xfe` in it is not UTF-8"), "{named:?}");
    assert!(taken.restore(&changes.all).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(fixture.inside("src/b")).unwrap(), "b");
    assert_eq!(fs::read_to_string(strange).unwrap(), "new");
}

#[test]
fn checkpoints_are_bounded() {
    let fixture = Fixture::new();
    let large = File::create(fixture.inside("large")).unwrap();
    large.set_len(MAX_BYTES).unwrap();
    let refused = fixture.all().create(&fixture.inside("")).unwrap_err();
    assert!(matches!(refused, CheckpointError::TooLarge(_)), "{refused}");
    assert_eq!(fs::read_dir(fixture.0.path().join("checkpoints")).unwrap().count(), 0);
    fs::remove_file(fixture.inside("large")).unwrap();
    let kept = || fixture.all().list().unwrap().into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    for number in 0..MAX_CHECKPOINTS + 2 {
        let before = kept();
        let mut taken = fixture.all().create(&fixture.inside("")).unwrap();
        assert_eq!(kept(), before, "a run that has not started removes no checkpoint");
        taken.assign_to_run(&format!("run{number}")).unwrap();
    }
    let kept = kept();
    assert_eq!(kept.len(), MAX_CHECKPOINTS, "{kept:?}");
    assert!(!kept.contains(&"run0".to_owned()) && kept.contains(&format!("run{}", MAX_CHECKPOINTS + 1)));
}

#[test]
fn only_a_checkpoint_of_the_same_folder_is_used() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    for id in ["", "..", "../folder", "run/files", "new-run", "other"] {
        assert!(matches!(fixture.all().open(id), Err(CheckpointError::Unknown(_))), "{id}");
    }
    // A disk can get another device number at a restart, but it keeps the id of its file system.
    drop(taken);
    let record = fixture.0.path().join("checkpoints/run/before.json");
    let written: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    let with = |device: u64, file_system: u64| {
        let mut changed = written.clone();
        changed["identity"][0] = device.into();
        changed["file_system"] = file_system.into();
        fs::write(&record, changed.to_string()).unwrap();
        fixture.all().open("run").unwrap().changes()
    };
    let own = written["file_system"].as_u64().unwrap();
    assert_ne!(own, 0, "the test needs a file system with an id");
    assert!(with(1, own).is_ok());
    assert!(matches!(with(1, own + 1), Err(CheckpointError::DifferentFolder(_))));
    fs::write(&record, written.to_string()).unwrap();
    let taken = fixture.all().open("run").unwrap();

    fs::rename(fixture.inside(""), fixture.0.path().join("moved")).unwrap();
    fs::create_dir(fixture.inside("")).unwrap();
    assert!(matches!(taken.changes(), Err(CheckpointError::DifferentFolder(_))));
    fs::remove_dir(fixture.inside("")).unwrap();
    symlink(Path::new("moved"), fixture.inside("").parent().unwrap().join("folder")).unwrap();
    let linked = taken.changes().unwrap_err();
    assert!(matches!(linked, CheckpointError::Io { .. }), "{linked}");
}

#[test]
fn a_file_that_changes_while_others_are_restored_stays() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    for path in ["a", "src/b", "src/deep/c", "new"] {
        fs::write(fixture.inside(path), "by the run").unwrap();
    }
    taken.finish().unwrap();
    let mut changes = taken.changes().unwrap().all;
    changes.retain(|change| change.path != "new");
    // The first file's copy is a pipe, so restoring blocks there.
    let copies = fixture.0.path().join("checkpoints/run/files");
    let is_first = |copy: &PathBuf| fs::read_to_string(copy).unwrap() == "one\ntwo\n";
    let first = fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().path()).find(is_first).unwrap();
    fs::remove_file(&first).unwrap();
    mknodat(CWD, &first, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let restored = thread::scope(|scope| {
        let restoring = scope.spawn(|| taken.restore(&changes).unwrap());
        let mut copy = fs::OpenOptions::new().write(true).open(&first).unwrap();
        fs::write(fixture.inside("src/b"), "by the user").unwrap();
        fs::remove_file(fixture.inside("src/deep/c")).unwrap();
        copy.write_all(b"one\ntwo\n").unwrap();
        drop(copy);
        restoring.join().unwrap()
    });
    let failed: Vec<_> = restored.failed.iter().map(|one| one.path.as_str()).collect();
    assert_eq!((restored.count, failed), (1, vec!["src/b", "src/deep/c"]));
    assert_eq!(fs::read_to_string(fixture.inside("a")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(fixture.inside("src/b")).unwrap(), "by the user");
    assert!(!fixture.inside("src/deep/c").exists());
    let left =
        fixture.content().into_keys().filter(|path| path.to_str().unwrap().contains("ironcurtain-undo"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_large_new_file_is_not_read() {
    let fixture = Fixture::new();
    let taken = fixture.take();
    let large = File::create(fixture.inside("large")).unwrap();
    large.set_len(MAX_BYTES + 1).unwrap();
    taken.finish().unwrap();
    let after = fs::read_to_string(fixture.0.path().join("checkpoints/run/after.json")).unwrap();
    assert!(after.contains("Unread"), "{after}");
    let change = || taken.changes().unwrap().all.remove(0);
    assert_eq!((change().path.as_str(), change().is_later), ("large", false));
    large.set_len(MAX_BYTES + 2).unwrap();
    assert!(change().is_later);
}

#[test]
fn a_checkpoint_that_is_in_use_is_not_removed() {
    let fixture = Fixture::new();
    let used = fixture.take();
    let mut starting = fixture.all().create(&fixture.inside("")).unwrap();
    // The process is killed before the run starts.
    drop(fixture.all().create(&fixture.inside("")).unwrap());
    for number in 0..MAX_CHECKPOINTS + 2 {
        fixture.all().create(&fixture.inside("")).unwrap().assign_to_run(&format!("later{number}")).unwrap();
    }
    starting.assign_to_run("started").unwrap();
    for taken in [&used, &starting] {
        assert!(taken.changes().unwrap().all.is_empty());
    }
    let ids: Vec<String> = fixture.all().list().unwrap().into_iter().map(|(id, _)| id).collect();
    assert!(ids.contains(&"run".to_owned()) && ids.contains(&"started".to_owned()), "{ids:?}");
    let all = fs::read_dir(fixture.0.path().join("checkpoints")).unwrap();
    assert!(
        all.map(|entry| entry.unwrap().file_name()).all(|name| !name.to_str().unwrap().starts_with("new-"))
    );
    // Once these checkpoints are no longer in use, they are removed like the others.
    drop((used, starting));
    fixture.all().create(&fixture.inside("")).unwrap().assign_to_run("last").unwrap();
    assert_eq!(fixture.all().list().unwrap().len(), MAX_CHECKPOINTS);
}
