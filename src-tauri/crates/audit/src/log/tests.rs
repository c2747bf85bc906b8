//! Tests the writing of entries, the detection of changes to a log, and each caller's result.

mod head;

use super::*;
use crate::testing::old_log;
use crate::{
    CallResult, DecidedBy, Event, KnownHead, LOG_NAME, PolicyDecision, check, check_written, newest,
};
use std::path::PathBuf;

#[tokio::test]
async fn entries_are_chained_across_restarts_and_a_torn_line_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(LOG_NAME);
    for _ in 0..2 {
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        audit.record(Entry::new(Event::Session, "began")).await.unwrap();
        audit.record(Entry::new(Event::Answer, "a person said yes")).await.unwrap();
    }
    let mut torn = std::fs::read(&path).unwrap();
    torn.extend_from_slice(b"{\"seq\":5,\"ha");
    std::fs::write(&path, torn).unwrap();
    assert!(!check(dir.path()).unwrap().intact());
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    assert_eq!(audit.record(Entry::new(Event::Session, "after the crash")).await.unwrap(), 6);
    let checked = check(dir.path()).unwrap();
    assert_eq!((checked.problem, checked.entries), (None, 6));
}

#[tokio::test]
async fn any_edit_is_detected_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(LOG_NAME);
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    for n in 0..5 {
        audit.record(Entry::new(Event::Session, format!("entry {n}"))).await.unwrap();
    }
    let good = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let problem = |text: String| {
        std::fs::write(&path, text).unwrap();
        check(dir.path()).unwrap().problem.unwrap()
    };
    assert_eq!(problem(good.replace("entry 2", "entry X")), "line 3: its content does not match its hash");
    let without = [&lines[..2], &lines[3..]].concat().join("\n") + "\n";
    assert_eq!(problem(without), "line 3: it does not follow the line before it");
    let swapped = [lines[1], lines[0], lines[2]].join("\n") + "\n";
    assert_eq!(problem(swapped), "line 1: it does not follow the line before it");
    assert_eq!(problem("{}\n".to_owned()), "line 1: it has no hash");
}

#[tokio::test]
async fn a_log_of_an_earlier_version_is_valid_and_continued() {
    let dir = old_log();
    let checked = check(dir.path()).unwrap();
    assert_eq!((checked.problem, checked.entries), (None, 20));
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    assert_eq!(audit.record(Entry::new(Event::Session, "began")).await, Ok(21));
    assert_eq!(audit.record(Entry::new(Event::Session, "ended")).await, Ok(22));
    assert_eq!(check(dir.path()).unwrap().problem, None);
    let log = dir.path().join(LOG_NAME);
    let changed =
        std::fs::read_to_string(&log).unwrap().replacen("approved: by the team", "approved: by X", 1);
    std::fs::write(&log, changed).unwrap();
    let problem = check(dir.path()).unwrap().problem;
    assert_eq!(problem.as_deref(), Some("line 4: its content does not match its hash"));
}

#[tokio::test]
async fn a_valid_chain_that_is_truncated_or_recreated_is_detected() {
    let log_of = async |words: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        for word in words {
            audit.record(Entry::new(Event::Session, *word)).await.unwrap();
        }
        (dir, audit.status().0)
    };
    let [(dir, written), (short, _), (other, _)] =
        [log_of(&["a", "b", "c"]).await, log_of(&["a", "b"]).await, log_of(&["a", "X", "c"]).await];
    let problem = |dir: &tempfile::TempDir, written| check_written(dir.path(), written).unwrap().problem;
    assert_eq!(problem(&dir, &written), None);
    assert_eq!(problem(&short, &written), Some("it ends after 2 of 3 entries".into()));
    assert_eq!(problem(&other, &written), Some("line 3: it does not match the recorded entry".into()));
    // The log may continue after the known entry.
    assert_eq!(problem(&dir, &ChainPosition { entries: 0, ..log_of(&[]).await.1 }), None);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_not_on_disk_is_not_settled() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let record = async || audit.record(Entry::new(Event::Session, "x")).await.unwrap();
    record().await;
    let first = audit.flush().await;
    assert_eq!(first, audit.status().0);
    record().await;
    // From here on, syncing fails.
    lock(&audit.0.owned).writer.redirect_to_full_device();
    assert_eq!(audit.flush().await, first);
    assert_eq!(audit.status().0.entries, 2);
}

#[tokio::test]
async fn a_failed_write_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Audit::open(&dir.path().join("missing"), |_| ()).is_err());
    let mut writer = Writer::open(LogOptions::new(dir.path())).unwrap();
    writer.redirect_to_full_device();
    let entry = Pending::new(Entry::new(Event::Decision, "x")).unwrap();
    let error = writer.append(&[entry]).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
}

#[tokio::test]
async fn pending_entries_are_written_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let writers = (0..8).map(|writer| {
        let audit = audit.clone();
        tokio::spawn(async move {
            let mut last = 0;
            for n in 0..200 {
                let event = if n % 50 == 0 { Event::Answer } else { Event::Session };
                let number = audit.record(Entry::new(event, format!("{writer}: {n}"))).await.unwrap();
                assert!(number > last);
                last = number;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let checked = check(dir.path()).unwrap();
    assert_eq!((checked.problem, checked.entries), (None, 1600));
}

#[tokio::test]
async fn an_allowed_call_takes_at_most_600_bytes_and_loses_no_field() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let path = "/home/person/projects/application/src/main.rs";
    let decision = || {
        let mut entry = Entry::new(Event::Decision, "");
        entry.request_id = Some("117".to_owned());
        (entry.session, entry.client) = (Some("4mc6fg3r2g6pe65b".to_owned()), Some("claude".to_owned()));
        (entry.server_name, entry.tool_name) =
            (Some("filesystem".to_owned()), Some("read_text_file".to_owned()));
        entry.arguments = serde_json::json!({ "path": path }).as_object().cloned();
        entry.paths = vec![path.to_owned()];
        let reason = "grant `nt5u8qj8t4m4kzgr`";
        entry.policy_decision = Some(PolicyDecision::allow(DecidedBy::Grant, "grant", reason));
        entry.policy_hash = Some(crate::hash_of(b"policy"));
        entry.grant_id = Some("nt5u8qj8t4m4kzgr".to_owned());
        entry.sandboxed = Some(true);
        entry
    };
    for n in 0..1000 {
        let number = audit.record(decision()).await.unwrap();
        assert_eq!(number, 2 * n + 1);
        audit.record(Entry::outcome_of(number, CallResult::Ok, 12)).await.unwrap();
    }
    let bytes = std::fs::metadata(dir.path().join(LOG_NAME)).unwrap().len() / 1000;
    assert!(bytes <= 600, "{bytes} bytes");
    let found: Vec<Entry> = newest(dir.path(), 2)
        .unwrap()
        .map(|found| match found {
            crate::LogLine::Entry(entry) => *entry,
            crate::LogLine::TooLong { .. } => panic!("it is short"),
        })
        .collect();
    let [outcome, allowed] = found.try_into().unwrap();
    let expected = decision();
    let facts = |e: &Entry| {
        let names = [&e.request_id, &e.session, &e.client, &e.server_name, &e.tool_name];
        (names.map(Clone::clone), e.paths.clone(), e.sandboxed)
    };
    assert_eq!(facts(&outcome), facts(&expected));
    assert_eq!((outcome.result, outcome.duration_ms), (Some(CallResult::Ok), Some(12)));
    assert_eq!(facts(&allowed), facts(&expected));
    assert_eq!(allowed.policy_decision, expected.policy_decision);
    assert_eq!((allowed.arguments, allowed.grant_id), (expected.arguments, expected.grant_id));
    // The hash is written once per file, and again whenever it changes.
    let text = std::fs::read_to_string(dir.path().join(LOG_NAME)).unwrap();
    assert_eq!(text.matches("policyHash").count(), 1);
}

/// Creates a log of 40 entries in small files.
async fn small_files(dir: &Path) -> (LogOptions, Vec<PathBuf>) {
    let options = LogOptions { file_bytes: 1000, ..LogOptions::new(dir) };
    let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
    for n in 0..40 {
        audit.record(Entry::new(Event::Session, format!("entry {n}"))).await.unwrap();
    }
    let closed = crate::volumes::closed(dir).unwrap();
    (options, closed.into_iter().map(|(_, path)| path).collect())
}

#[tokio::test]
async fn the_chain_spans_files_and_a_missing_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (options, closed) = small_files(dir.path()).await;
    assert!(closed.len() > 3, "{closed:?}");
    let checked = || check(dir.path()).unwrap();
    assert_eq!((checked().problem, checked().entries), (None, 40));
    let read: Vec<u64> = crate::all(dir.path(), u64::MAX).unwrap().map(|e| e.unwrap().seq).collect();
    assert_eq!(read, (1..=40).collect::<Vec<_>>());
    assert_eq!(newest(dir.path(), 30).unwrap().count(), 30);
    let aside = dir.path().join("aside");
    let without = |path: &Path| {
        std::fs::rename(path, &aside).unwrap();
        let problem = checked().problem.unwrap();
        std::fs::rename(&aside, path).unwrap();
        problem
    };
    let oldest = without(&closed[0]);
    assert!(
        oldest.ends_with("are missing, and no later entry records that they were removed by age"),
        "{oldest}"
    );
    let middle = without(&closed[1]);
    assert!(middle.contains("does not follow: the entries from "), "{middle}");
    let last = without(closed.last().unwrap());
    assert!(last.ends_with("line 1: it does not follow the line before it"), "{last}");
    let text = std::fs::read_to_string(&closed[1]).unwrap();
    std::fs::write(&closed[1], text.replacen("entry", "Entry", 1)).unwrap();
    assert!(checked().problem.unwrap().ends_with("line 1: its content does not match its hash"));
    std::fs::write(&closed[1], text).unwrap();
    let audit = Audit::open_with(options, |_| ()).unwrap();
    assert_eq!(audit.record(Entry::new(Event::Session, "x")).await, Ok(41));
    assert_eq!(checked().problem, None);
}

#[tokio::test]
async fn removal_by_age_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (options, closed) = small_files(dir.path()).await;
    let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
    retention::remove_old(&options, |entry| audit.record(entry)).await.unwrap();
    assert!(closed.iter().all(|path| path.exists()), "none is a year old");
    let young = LogOptions { retention: Duration::ZERO, ..options };
    retention::remove_old(&young, |entry| audit.record(entry)).await.unwrap();
    assert!(closed.iter().all(|path| !path.exists()));
    let checked = check(dir.path()).unwrap();
    assert_eq!(checked.problem, None);
    assert!(checked.removed > 0, "{checked:?}");
    assert!(checked.removal.is_some_and(|entry| entry > checked.removed), "{checked:?}");
    // The log's own record of a removal does not explain a missing newest entry.
    let known = |entries| ChainPosition { entries, head: "unknown".to_owned() };
    let problem = format!("it begins after entry {} and does not contain entry 1", checked.removed);
    assert_eq!(check_written(dir.path(), &known(1)).unwrap().problem, Some(problem));
    let both = crate::check_all_written(dir.path(), &[known(1), audit.status().0]).unwrap();
    assert_eq!((both.problem, both.found), (None, 1));
    drop(audit);
    let audit = Audit::open_with(young, |_| ()).unwrap();
    audit.record(Entry::new(Event::Session, "after")).await.unwrap();
    assert_eq!(check(dir.path()).unwrap().problem, None);
}

#[tokio::test]
async fn a_kill_at_any_step_of_a_rotation_loses_nothing() {
    for step in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let (options, _) = small_files(dir.path()).await;
        let log = dir.path().join(LOG_NAME);
        let ChainPosition { entries, .. } = Writer::open(options.clone()).unwrap().written().clone();
        let first = crate::volumes::list(dir.path())
            .unwrap()
            .pop()
            .unwrap()
            .open()
            .unwrap()
            .start_position()
            .unwrap()
            .unwrap();
        if step > 0 {
            std::fs::rename(&log, dir.path().join(crate::volumes::name_of(first.entries + 1))).unwrap();
        }
        if step > 1 {
            std::fs::write(&log, "").unwrap();
        }
        if step > 2 {
            std::fs::write(&log, "{\"seq\":41,\"times").unwrap();
        }
        let audit = Audit::open_with(options, |_| ()).unwrap();
        let repaired = u64::from(step > 2);
        assert_eq!(audit.record(Entry::new(Event::Session, "x")).await, Ok(entries + 1 + repaired));
        let checked = check(dir.path()).unwrap();
        assert_eq!((checked.problem, checked.entries), (None, entries + 1 + repaired), "step {step}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_search_index_is_updated_when_few_entries_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let write = async |count: u64| {
        for _ in 0..count {
            audit.record(Entry::new(Event::Session, "x")).await.unwrap();
        }
    };
    let index = dir.path().join("search-000000000001.db");
    let while_passes = async |seconds| tokio::time::sleep(Duration::from_secs(seconds)).await;
    write(1).await;
    while_passes(1).await;
    for _ in 0..3 {
        write(BUSY_ENTRIES).await;
        while_passes(5).await;
        assert!(!index.exists(), "it would slow down the calls");
    }
    while_passes(6).await;
    assert!(index.exists(), "it was not updated");
}

#[tokio::test]
async fn entries_recorded_together_have_consecutive_numbers_and_fail_together() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    audit.record(Entry::new(Event::Session, "before")).await.unwrap();
    let entry = |n| Pending::new(Entry::new(Event::Decision, format!("{n}"))).unwrap();
    let entries = || (0..3).map(entry).collect();
    assert_eq!(audit.record_all(entries()).await, Ok(2));
    assert_eq!(audit.record(Entry::new(Event::Session, "after")).await, Ok(5));
    let log = std::fs::read_to_string(dir.path().join(LOG_NAME)).unwrap();
    let summaries: Vec<&str> =
        log.lines().filter_map(|line| line.split("\"summary\":\"").nth(1)?.split('"').next()).collect();
    assert_eq!(summaries, ["before", "0", "1", "2", "after"]);
    lock(&audit.0.owned).writer.redirect_to_full_device();
    assert!(audit.record_all(entries()).await.is_err());
}

#[tokio::test]
async fn noted_entries_are_written_soon_or_with_the_next_recorded_one() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), |_| ()).unwrap();
    let lines = || std::fs::read_to_string(dir.path().join(LOG_NAME)).unwrap().lines().count();
    audit.note(Entry::new(Event::Outcome, "one")).unwrap();
    audit.note(Entry::new(Event::Outcome, "two")).unwrap();
    assert_eq!(audit.record(Entry::new(Event::Decision, "three")).await, Ok(3));
    audit.note(Entry::new(Event::Outcome, "four")).unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while lines() < 4 {
        assert!(std::time::Instant::now() < end);
        tokio::task::yield_now().await;
    }
    // Both `status` and a later `open` include the noted entry.
    audit.note(Entry::new(Event::Outcome, "five")).unwrap();
    assert_eq!(audit.status().0.entries, 5);
    audit.note(Entry::new(Event::Outcome, "six")).unwrap();
    drop(audit);
    assert_eq!(check(dir.path()).unwrap().entries, 6);
}
