//! Tests searches with and without an index, and with an index that is outdated, damaged or from a different log.

use super::*;
use crate::testing::old_log;
use crate::{CallResult, DecidedBy, Event, LOG_NAME, PolicyDecision, Status};

fn call(n: u64, server: &str, path: &str, allow: bool) -> Entry {
    let mut entry = Entry::new(Event::Decision, "");
    (entry.seq, entry.timestamp) = (n, n * 1000);
    (entry.session, entry.client) = (Some(format!("s{}", n % 3)), Some("claude".to_owned()));
    (entry.server_name, entry.tool_name) = (Some(server.to_owned()), Some("read_file".to_owned()));
    entry.arguments = serde_json::json!({ "path": path, "note": "Grüße, welt" }).as_object().cloned();
    entry.paths = vec![path.to_owned()];
    let of = if allow { PolicyDecision::allow } else { PolicyDecision::deny };
    entry.policy_decision = Some(of(DecidedBy::Rule, "project", "reading is free"));
    entry
}

/// Creates a log with three decisions and one outcome.
fn log() -> (tempfile::TempDir, Vec<Entry>) {
    let dir = tempfile::tempdir().unwrap();
    let mut end = Entry::outcome_of(2, CallResult::Ok, 5);
    (end.seq, end.timestamp) = (4, 4000);
    let entries = vec![
        call(1, "filesystem", "/home/u/src/main.rs", true),
        call(2, "git", "/home/u/docs/plan.md", true),
        call(3, "filesystem", "/home/u/srcs/b.rs", false),
        end,
    ];
    write(dir.path(), &entries);
    (dir, entries)
}

fn write(dir: &Path, entries: &[Entry]) {
    let text: String = entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    // The first line of a file contains `prev`.
    let text = text.replacen("}\n", ",\"prev\":\"x\"}\n", 1);
    std::fs::write(dir.join(LOG_NAME), text).unwrap();
}

fn found(dir: &Path, filter: &Filter) -> Vec<u64> {
    search(dir, filter, 100).unwrap().iter().map(|entry| entry.seq).collect()
}

fn set(change: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    change(&mut filter);
    filter
}

fn cases() -> Vec<(Filter, Vec<u64>)> {
    let text = |text: &str| set(|f| f.text = Some(text.to_owned()));
    let path = |path: &str| set(|f| f.path = Some(path.to_owned()));
    vec![
        (Filter::default(), vec![4, 3, 2, 1]),
        (set(|f| f.server = Some("git".into())), vec![4, 2]),
        (set(|f| f.server = Some("gi".into())), vec![]),
        (set(|f| f.tool = Some("read_file".into())), vec![4, 3, 2, 1]),
        (set(|f| f.session = Some("s1".into())), vec![1]),
        (set(|f| f.decision = Some(Status::Deny)), vec![3]),
        (path("/home/u/src"), vec![1]),
        (path("/home/u/src/"), vec![1]),
        (path("/home/u/docs/plan.md"), vec![4, 2]),
        (path("/"), vec![4, 3, 2, 1]),
        (text("main.rs"), vec![1]),
        (text("mai"), vec![]),
        (text("mai*"), vec![1]),
        (text("GRÜSSE"), vec![]),
        (text("grüße reading"), vec![3, 2, 1]),
        (text("plan grüße"), vec![2]),
        (text("\" OR *"), vec![]),
        (set(|f| (f.since_ms, f.until_ms) = (Some(2000), Some(3000))), vec![3, 2]),
        (set(|f| (f.server, f.since_ms) = (Some("filesystem".into()), Some(2000))), vec![3]),
    ]
}

#[test]
fn entries_are_found_with_and_without_an_index() {
    let (dir, _) = log();
    for (filter, expected) in cases() {
        assert_eq!(found(dir.path(), &filter), expected, "{filter:?}");
        let volume = volumes::list(dir.path()).unwrap().pop().unwrap().open().unwrap();
        let read = read_through(&volume, &filter, 100).unwrap();
        assert_eq!(read.iter().map(|entry| entry.seq).collect::<Vec<_>>(), expected, "{filter:?}");
    }
    assert!(dir.path().join("search-000000000001.db").exists());
    assert_eq!(search(dir.path(), &Filter::default(), 2).unwrap().len(), 2);
    let end = search(dir.path(), &Filter::default(), 1).unwrap().remove(0);
    assert_eq!((end.tool_name.as_deref(), end.result), (Some("read_file"), Some(CallResult::Ok)));
}

#[test]
fn an_outdated_damaged_or_foreign_index_is_rebuilt() {
    let (dir, mut entries) = log();
    let all = |dir: &Path| found(dir, &set(|f| f.path = Some("/home".into())));
    assert_eq!(all(dir.path()), [4, 3, 2, 1]);
    entries.push(call(5, "git", "/home/u/x", true));
    write(dir.path(), &entries);
    assert_eq!(all(dir.path()), [5, 4, 3, 2, 1]);
    let index = dir.path().join("search-000000000001.db");
    for damage in ["", "no database"] {
        std::fs::write(&index, damage).unwrap();
        assert_eq!(all(dir.path()), [5, 4, 3, 2, 1]);
    }
    entries.truncate(2);
    entries[1].paths = vec!["/var/x".to_owned()];
    write(dir.path(), &entries);
    assert_eq!(all(dir.path()), [1]);
    // A directory in the index's place prevents rebuilding it, so every line is read.
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    assert_eq!(all(dir.path()), [1]);
}

#[test]
fn the_log_of_an_earlier_version_is_searched() {
    let dir = old_log();
    assert_eq!(found(dir.path(), &set(|f| f.decision = Some(Status::Deny))), [12]);
}

#[tokio::test]
async fn searches_use_the_index_and_it_follows_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::LogOptions { file_bytes: 20_000, ..crate::LogOptions::new(dir.path()) };
    let audit = crate::Audit::open_with(options, |_| ()).unwrap();
    for round in 1..=3_u64 {
        for n in 0..100 {
            let number = audit.record(call(n, "git", "/home/u/x", true)).await.unwrap();
            audit.record(Entry::outcome_of(number, CallResult::Ok, 1)).await.unwrap();
        }
        for listed in volumes::list(dir.path()).unwrap() {
            let volume = listed.open().unwrap();
            let index = up_to_date_index(dir.path(), &volume).unwrap().unwrap();
            let (conditions, mut count) =
                (IndexConditions::from_filter(&set(|f| f.server = Some("git".into()))), 0);
            index
                .find(&volume.file, &conditions, |entry| {
                    count += u64::from(
                        entry.decision_seq.is_some_and(|of| of > 0) || entry.paths == ["/home/u/x"],
                    );
                    Ok(true)
                })
                .unwrap();
            assert!(count > 10, "{count} of {}", volume.name());
        }
        assert_eq!(found(dir.path(), &set(|f| f.path = Some("/home".into()))).len(), 100);
        let all = search(dir.path(), &set(|f| f.decision = Some(Status::Allow)), 10_000).unwrap();
        assert_eq!(all.len() as u64, round * 100);
    }
}

/// Creates a log with other entries between three calls: one allowed after a question, one allowed and one denied.
fn calls() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let of = |n: u64, event: Event, request: &str| {
        let mut entry = Entry { event, ..call(n, "git", "/home/u/x", true) };
        (entry.session, entry.request_id) = (Some("s".to_owned()), Some(request.to_owned()));
        entry.policy_decision = None;
        entry
    };
    let decided = |n: u64, request: &str, decision: PolicyDecision| Entry {
        policy_decision: Some(decision),
        ..of(n, Event::Decision, request)
    };
    let question =
        Entry { policy_decision: Some(PolicyDecision::escalate("ask", "")), ..of(1, Event::Question, "a") };
    let end = |n: u64, decision: u64| Entry {
        seq: n,
        timestamp: n * 1000,
        ..Entry::outcome_of(decision, CallResult::Ok, 5)
    };
    let mut server = Entry::new(Event::Server, "started");
    (server.seq, server.timestamp) = (3, 3000);
    let entries = [
        question,
        decided(2, "b", PolicyDecision::allow(DecidedBy::Rule, "work", "")),
        server,
        decided(4, "a", PolicyDecision::allow(DecidedBy::Answer, "ask", "")),
        decided(5, "c", PolicyDecision::deny(DecidedBy::Rule, "keys", "")),
        end(6, 4),
        end(7, 2),
    ];
    write(dir.path(), &entries);
    dir
}

#[test]
fn the_entries_of_a_call_are_found_together_with_and_without_an_index() {
    let dir = calls();
    let seqs = |calls: Vec<FoundCall>| -> Vec<(u64, Vec<u64>)> {
        calls
            .into_iter()
            .map(|call| (call.newest_seq, call.entries.iter().map(|entry| entry.seq).collect()))
            .collect()
    };
    let cases = [
        (Filter::default(), None, vec![(7, vec![7, 2]), (6, vec![6, 4, 1]), (5, vec![5]), (3, vec![3])]),
        (Filter::default(), Some(6), vec![(5, vec![5]), (3, vec![3])]),
        (set(|f| f.decision = Some(Status::Escalate)), None, vec![(1, vec![6, 4, 1])]),
        (set(|f| f.decision = Some(Status::Allow)), Some(4), vec![(2, vec![7, 2])]),
        (set(|f| f.client = Some("claude".into())), Some(6), vec![(5, vec![5])]),
        (set(|f| f.client = Some("other".into())), None, vec![]),
    ];
    for (filter, before, expected) in cases {
        let found = search_calls(dir.path(), &filter, before, 100).unwrap();
        assert_eq!(seqs(found), expected, "{filter:?} {before:?}");
        let volume = volumes::list(dir.path()).unwrap().pop().unwrap().open().unwrap();
        let read = calls::read_calls(&volume, &filter, before.unwrap_or(u64::MAX)).unwrap();
        assert_eq!(seqs(read), expected, "{filter:?} {before:?}");
    }
    let first = search_calls(dir.path(), &Filter::default(), None, 2).unwrap();
    assert_eq!(first.iter().map(|call| call.newest_seq).collect::<Vec<_>>(), [7, 6]);
    let of =
        |seq| entries_of_call(dir.path(), seq).unwrap().iter().map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!((of(1), of(6), of(3), of(99)), (vec![6, 4, 1], vec![6, 4, 1], vec![3], vec![]));
}

#[test]
fn decisions_are_counted_once_with_and_without_an_index() {
    let dir = calls();
    let index = |exists: bool| assert_eq!(dir.path().join("search-000000000001.db").exists(), exists);
    let counts = |allowed, asked, denied| DecisionCounts { allowed, asked, denied };
    let check = || {
        let by_period = decisions_by_period(dir.path(), 1000, 4000, 2).unwrap();
        assert_eq!(by_period, [counts(1, 1, 0), counts(0, 0, 1)]);
        let by_rule = decisions_by_rule(dir.path(), 3000).unwrap();
        assert_eq!(by_rule, [("ask".to_owned(), 1), ("keys".to_owned(), 1)].into());
    };
    check();
    index(true);
    std::fs::remove_file(dir.path().join("search-000000000001.db")).unwrap();
    // A directory in the index's place can be neither opened nor replaced.
    std::fs::create_dir_all(dir.path().join("search-000000000001.db/x")).unwrap();
    check();
}
