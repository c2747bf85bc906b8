//! Tests following a log: restarts, missing files and replaced logs.

use super::*;
use crate::{Audit, Event, LogOptions};

async fn log(dir: &Path, text: &str, entries: u64) -> Audit {
    let audit = Audit::open_with(LogOptions { file_bytes: 600, ..LogOptions::new(dir) }, |_| ()).unwrap();
    for number in 0..entries {
        audit.record(Entry::new(Event::Session, format!("{text} {number}"))).await.unwrap();
    }
    audit
}

/// Returns the sequence numbers of the entries, with `-N` for a range of lost entries that ends at N.
fn read(follower: &mut Follower) -> Vec<i64> {
    let mut seen = Vec::new();
    while let Some(next) = follower.read_next().unwrap() {
        seen.push(match next {
            FollowedEntry::Entry { entry, .. } => i64::try_from(entry.seq).unwrap(),
            FollowedEntry::Lost(range) => -i64::try_from(range.until.entries).unwrap(),
        });
    }
    seen
}

#[tokio::test]
async fn every_entry_is_read_once_across_files_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let mut follower = Follower::new(dir.path(), LogPosition::beginning());
    assert_eq!(read(&mut follower), [0; 0]);
    let audit = log(dir.path(), "entry", 7).await;
    assert_eq!(read(&mut follower), (1..=7).collect::<Vec<_>>());
    assert_eq!(follower.behind().unwrap(), 0);
    assert_eq!(LogPosition::end(dir.path()).unwrap(), *follower.position());
    let before = LogPosition::before_newest(dir.path(), 1).unwrap();
    assert_eq!(read(&mut Follower::new(dir.path(), before)), [7]);
    for next in 8..40 {
        audit.record(Entry::new(Event::Session, "next")).await.unwrap();
        assert!(follower.behind().unwrap() > 0);
        // A reader that resumes from a stored position returns the same entry as the open reader.
        let stored: LogPosition =
            serde_json::from_str(&serde_json::to_string(follower.position()).unwrap()).unwrap();
        assert_eq!(read(&mut Follower::new(dir.path(), stored)), [next]);
        assert_eq!(read(&mut follower), [next]);
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().count() > 4);
}

#[tokio::test]
async fn outcome_is_completed_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let mut decision = Entry::new(Event::Decision, "");
    decision.tool_name = Some("read".to_owned());
    let number = audit.record(decision).await.unwrap();
    let position = LogPosition::end(dir.path()).unwrap();
    audit.record(Entry::outcome_of(number, crate::CallResult::Ok, 3)).await.unwrap();
    let Some(FollowedEntry::Entry { entry, .. }) = Follower::new(dir.path(), position).read_next().unwrap()
    else {
        panic!("the outcome is missing");
    };
    assert_eq!((entry.event, entry.tool_name.as_deref()), (Event::Outcome, Some("read")));
}

#[tokio::test]
async fn removed_and_replaced_entries_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let audit = log(dir.path(), "entry", 12).await;
    let position = LogPosition::end(dir.path()).unwrap();
    let mut follower = Follower::new(dir.path(), LogPosition::beginning());
    let (_, oldest) = volumes::closed(dir.path()).unwrap().remove(0);
    std::fs::remove_file(oldest).unwrap();
    let (next, _) = volumes::closed(dir.path()).unwrap().remove(0);
    let next = i64::try_from(next).unwrap();
    assert_eq!(read(&mut follower), std::iter::once(1 - next).chain(next..=12).collect::<Vec<_>>());
    drop(audit);
    // A different log with the same number of entries has different hashes.
    let other = tempfile::tempdir().unwrap();
    log(other.path(), "other", 12).await;
    let seen = read(&mut Follower::new(other.path(), position));
    assert_eq!(seen, std::iter::once(0).chain(1..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn edited_entry_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(log(dir.path(), "entry", 2).await);
    let file = dir.path().join(crate::LOG_NAME);
    let text = std::fs::read_to_string(&file).unwrap().replace("entry 1", "entry 9");
    std::fs::write(&file, text).unwrap();
    let mut follower = Follower::new(dir.path(), LogPosition::beginning());
    assert!(follower.read_next().unwrap().is_some());
    let problem = follower.read_next().unwrap_err().to_string();
    assert_eq!(problem, "entry 2 is invalid: its content does not match its hash");
}

/// Returns the paths of the closed files, oldest first.
fn closed(dir: &Path) -> Vec<PathBuf> {
    volumes::closed(dir).unwrap().into_iter().map(|(_, path)| path).collect()
}

#[tokio::test]
async fn line_longer_than_the_window_ends_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    audit.record(Entry::new(Event::Session, "short")).await.unwrap();
    let mut long = Entry::new(Event::Decision, "long");
    // Each character takes six bytes when escaped.
    long.paths = vec!["\u{1}".repeat(60_000)];
    audit.record(long).await.unwrap();
    assert!(dir.path().join(crate::LOG_NAME).metadata().unwrap().len() > BEFORE);
    assert_eq!(read(&mut Follower::new(dir.path(), LogPosition::beginning())), [1, 2]);
    let end = LogPosition::end(dir.path()).unwrap();
    assert_eq!((end.written.clone(), read(&mut Follower::new(dir.path(), end))), (audit.status().0, vec![]));
    let before = LogPosition::before_newest(dir.path(), 1).unwrap();
    assert_eq!(read(&mut Follower::new(dir.path(), before)), [2]);
}

#[tokio::test]
async fn missing_middle_file_is_a_lost_range() {
    let dir = tempfile::tempdir().unwrap();
    drop(log(dir.path(), "entry", 20).await);
    let files = closed(dir.path());
    let [first, next] = [1, 2].map(|at| i64::try_from(volumes::closed(dir.path()).unwrap()[at].0).unwrap());
    let expected: Vec<i64> = (1..first).chain([1 - next]).chain(next..=20).collect();
    // One reader has finished the first file, and the other is inside the file that is then removed.
    let mut behind = Follower::new(dir.path(), LogPosition::beginning());
    (1..first).for_each(|_| drop(behind.read_next().unwrap()));
    let mut inside = Follower::new(dir.path(), LogPosition::beginning());
    (1..=first).for_each(|_| drop(inside.read_next().unwrap()));
    let stored = inside.position().clone();
    std::fs::remove_file(&files[1]).unwrap();
    assert_eq!(read(&mut Follower::new(dir.path(), LogPosition::beginning())), expected);
    assert_eq!(read(&mut behind), expected[usize::try_from(first).unwrap() - 1..]);
    assert_eq!(
        read(&mut Follower::resume(dir.path(), stored)),
        expected[usize::try_from(first).unwrap() - 1..]
    );
}

#[tokio::test]
async fn position_that_was_reached_and_is_changed_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(log(dir.path(), "entry", 2).await);
    let mut follower = Follower::new(dir.path(), LogPosition::beginning());
    assert_eq!(read(&mut follower), [1, 2]);
    let position = follower.position().clone();
    let other = tempfile::tempdir().unwrap();
    drop(log(other.path(), "other", 2).await);
    std::fs::copy(other.path().join(crate::LOG_NAME), dir.path().join(crate::LOG_NAME)).unwrap();
    let problem = format!(
        "`audit.jsonl` no longer contains entry 2 before byte {}, so it was replaced or changed",
        position.offset
    );
    for mut reached in [follower, Follower::resume(dir.path(), position.clone())] {
        for _ in 0..2 {
            assert_eq!(reached.read_next().unwrap_err().to_string(), problem);
        }
    }
    // A stored position may belong to an older log.
    assert_eq!(read(&mut Follower::new(dir.path(), position)), [0, 1, 2]);
}
