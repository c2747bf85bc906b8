//! Tests of journals whose owner is running, has exited, or was killed while writing.

use super::*;

/// Writes a journal owned by `owner` and spawns a child that keeps holding the lock after this process closes the
/// file.
fn held_by_child(dir: &Path, owner: Owner) -> (PathBuf, std::process::Child) {
    let Journal { file, path } = Journal::create(dir, "s", &AutostartRules::default()).unwrap();
    let journal = Journal { file, path: path.clone() };
    journal.write(&JournalLine::Owner(owner)).unwrap();
    let mut child = std::process::Command::new("cat");
    let inherited = journal.file.try_clone().unwrap();
    let child = child.stdin(std::process::Stdio::piped()).stdout(inherited).spawn().unwrap();
    (path, child)
}

#[test]
fn waits_for_a_lock_held_by_a_child_of_an_exited_owner() {
    let dir = tempfile::tempdir().unwrap();
    let own = Owner::find(std::process::id()).unwrap();
    let reused = Owner { started: own.started + 1, ..own };
    let (path, mut child) = held_by_child(dir.path(), reused);
    let taker = std::thread::spawn(move || Journal::adopt(path).unwrap());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(taker.join().unwrap().is_some());
}

#[test]
fn journal_of_a_running_owner_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut child) = held_by_child(dir.path(), Owner::find(std::process::id()).unwrap());
    assert!(Journal::adopt(path).unwrap().is_none());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn journal_without_a_begin_line_is_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s~1.json");
    fs::write(&path, "{\"line\":\"beg").unwrap();
    assert!(Journal::adopt(path.clone()).unwrap().is_none());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"line\":\"beg");
}

#[test]
fn incomplete_last_line_is_removed_and_the_rest_is_taken_again() {
    let dir = tempfile::tempdir().unwrap();
    let begun = Journal::create(dir.path(), "s", &AutostartRules::default()).unwrap();
    begun.log_approved("/home/u/a").unwrap();
    (&begun.file).write_all(b"{\"line\":\"named\",\"pa").unwrap();
    let path = begun.path.clone();
    release(begun);
    for _ in 0..2 {
        let unfinished = Journal::adopt(path.clone()).unwrap().unwrap();
        assert_eq!(
            (unfinished.name.as_str(), unfinished.approved.as_slice()),
            ("s", &["/home/u/a".to_owned()][..])
        );
        assert_eq!(unfinished.findings, []);
        release(unfinished.journal);
    }
}

/// Unlocks the journal before closing it, because a child forked by a concurrent test shares the lock until it
/// calls `exec`.
fn release(journal: Journal) {
    flock(&journal.file, FlockOperation::Unlock).unwrap();
}

#[test]
fn zombie_is_not_an_owner() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    // Waits for the child to exit without reaping it.
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    let id = rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child));
    rustix::process::waitid(id, options).unwrap();
    assert_eq!(Owner::find(child.id()), None);
    child.wait().unwrap();
}

#[test]
fn numbers_are_never_reused_and_existing_ones_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let begun = || Journal::create(dir.path(), "s", &AutostartRules::default()).unwrap();
    let first = begun().path;
    fs::remove_file(&first).unwrap();
    let second = begun().path;
    assert_ne!(second, first);
    let number = |path: &Path| -> u64 {
        path.to_str().unwrap().rsplit_once('~').unwrap().1.strip_suffix(".json").unwrap().parse().unwrap()
    };
    for taken in number(&second) + 1..number(&second) + 50 {
        fs::write(dir.path().join(format!("s~{taken}.json")), "").unwrap();
    }
    assert!(number(&begun().path) >= number(&second) + 50);
}
