//! Tests the head file: truncated logs, older copies, damage, and concurrent writes.

use super::*;

/// Creates a log with `entries` entries and a head file.
async fn known_log(all: &Path, entries: usize) -> LogOptions {
    let options = LogOptions { head: Some(all.join("head.json")), ..LogOptions::new(&all.join("audit")) };
    std::fs::create_dir_all(&options.dir).unwrap();
    let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
    for n in 0..entries {
        audit.record(Entry::new(Event::Session, format!("entry {n}"))).await.unwrap();
    }
    // A background task can hold the log for longer than this function. It must not write a head then, because the
    // tests open the log again, and only one writer of the head may exist.
    audit.flush().await;
    options
}

fn problem(options: &LogOptions) -> Option<String> {
    match KnownHead::read(options.head.as_ref().unwrap()) {
        KnownHead::Entry(known) => check_written(&options.dir, &known).unwrap().problem,
        head @ (KnownHead::Missing | KnownHead::Damaged(_)) => panic!("{head:?}"),
    }
}

#[tokio::test]
async fn truncation_and_an_older_copy_are_detected_at_the_next_start() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 3).await;
    let log = options.dir.join(LOG_NAME);
    let older = std::fs::read_to_string(&log).unwrap();
    assert_eq!(known_log(all.path(), 2).await, options);
    let newest = std::fs::read_to_string(&log).unwrap();
    assert_eq!(problem(&options), None);
    let mut cut: Vec<&str> = newest.split_inclusive('\n').collect();
    cut.pop();
    for (count, text) in [(4, cut.concat()), (3, older)] {
        std::fs::write(&log, text).unwrap();
        let ends = format!("it ends after {count} of 5 entries");
        assert_eq!(problem(&options), Some(ends.clone()));
        let refused = Audit::open_with(options.clone(), |_| ()).unwrap_err().to_string();
        assert!(refused.contains(&ends) && refused.ends_with("/audit` away to start a new log"), "{refused}");
    }
    // Follows the advice in the error message, then puts the log back.
    std::fs::rename(&options.dir, all.path().join("aside")).unwrap();
    std::fs::create_dir(&options.dir).unwrap();
    let head = std::fs::read(options.head.as_ref().unwrap()).unwrap();
    drop(Audit::open_with(options.clone(), |_| ()).unwrap());
    assert_eq!(problem(&options), None);
    std::fs::write(options.head.as_ref().unwrap(), head).unwrap();
    std::fs::remove_dir_all(&options.dir).unwrap();
    std::fs::rename(all.path().join("aside"), &options.dir).unwrap();
    // The intact log is continued. If the log is missing, a new one is started, and its start is recorded.
    std::fs::write(&log, &newest).unwrap();
    drop(Audit::open_with(options.clone(), |_| ()).unwrap());
    std::fs::remove_file(&log).unwrap();
    assert_eq!(problem(&options), Some("it ends after 0 of 5 entries".to_owned()));
    let head = options.head.clone().unwrap();
    let known = std::fs::read(&head).unwrap();
    drop(Audit::open_with(options.clone(), |_| ()).unwrap());
    assert_eq!(problem(&options), None);
    // Simulates a kill after that entry was written but before the head was.
    std::fs::write(&head, known).unwrap();
    let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
    assert_eq!(audit.record(Entry::new(Event::Session, "x")).await, Ok(2));
    drop(audit);
    assert_eq!(problem(&options), None);
    let content = std::fs::read_to_string(&log).unwrap();
    assert!(content.contains("a new log was started: the previous one, with 5 entries up to "), "{content}");
}

#[tokio::test]
async fn a_kill_before_the_head_is_written_causes_no_false_alarm() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 3).await;
    let head = std::fs::read(options.head.as_ref().unwrap()).unwrap();
    assert_eq!(known_log(all.path(), 2).await, options);
    std::fs::write(options.head.as_ref().unwrap(), head).unwrap();
    assert_eq!(problem(&options), None);
    assert_eq!(known_log(all.path(), 1).await, options);
    assert_eq!(problem(&options), None);
    assert_eq!(check(&options.dir).unwrap().entries, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_never_damage_the_head_or_make_it_older() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 1).await;
    let head = options.head.clone().unwrap();
    let audit = Audit::open_with(options, |_| ()).unwrap();
    for round in 0..200_u64 {
        // Simulates a shutdown that coincides with the flush after an entry.
        let ends = (0..4).map(|_| {
            let audit = audit.clone();
            tokio::spawn(async move {
                let number = audit.record(Entry::new(Event::Session, "x")).await.unwrap();
                audit.flush().await;
                number
            })
        });
        let mut newest = 0;
        for end in ends.collect::<Vec<_>>() {
            newest = newest.max(end.await.unwrap());
        }
        let text = std::fs::read_to_string(&head).unwrap();
        let known: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{round}: {e}: {text}"));
        assert_eq!(known["entries"], newest, "round {round}");
    }
    assert_eq!(std::fs::read_dir(all.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn log_with_invalid_head_is_continued_and_its_end_is_unknown() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 3).await;
    let head = options.head.clone().unwrap();
    let (log, good) = (options.dir.join(LOG_NAME), std::fs::read_to_string(&head).unwrap());
    for (content, problem) in [
        (Some(String::new()), "is empty"),
        (Some(good.repeat(2)), "is damaged: trailing characters"),
        (Some("x".to_owned()), "is damaged: expected value"),
        (None, "does not exist"),
    ] {
        match content {
            Some(content) => std::fs::write(&head, content).unwrap(),
            None => std::fs::remove_file(&head).unwrap(),
        }
        // Simulates an attacker who truncates the log and damages the head file.
        let whole = std::fs::read_to_string(&log).unwrap();
        let cut: Vec<&str> = whole.split_inclusive('\n').collect();
        std::fs::write(&log, cut[..cut.len() - 1].concat()).unwrap();
        let entries = cut.len() as u64 - 1;
        let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
        let content = audit.unknown_end().unwrap().to_owned();
        assert!(content.contains(&format!("`{}` {problem}", head.display())), "{content}");
        assert!(content.ends_with(": entries may be missing from the end of the log"), "{content}");
        let entry = std::fs::read_to_string(&log).unwrap().lines().last().unwrap().to_owned();
        assert!(entry.contains("entries may be missing from the end of the log"), "{entry}");
        assert_eq!(audit.record(Entry::new(Event::Session, "x")).await, Ok(entries + 2));
        assert_eq!(audit.opened_at().entries, entries);
        drop(audit);
        // The head was rewritten and is valid.
        let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
        assert_eq!((audit.unknown_end(), audit.opened_at().entries), (None, entries + 2));
    }
}

#[tokio::test]
async fn the_entry_known_elsewhere_decides_if_the_head_file_is_damaged() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 3).await;
    let (head, log) = (options.head.clone().unwrap(), options.dir.join(LOG_NAME));
    let KnownHead::Entry(known) = KnownHead::read(&head) else { panic!("it is whole") };
    let options = LogOptions { known_entry: Some(known), ..options };
    std::fs::write(&head, "").unwrap();
    let whole = std::fs::read_to_string(&log).unwrap();
    let cut: Vec<&str> = whole.split_inclusive('\n').collect();
    std::fs::write(&log, cut[..2].concat()).unwrap();
    let refused = Audit::open_with(options.clone(), |_| ()).unwrap_err().to_string();
    assert!(refused.contains("it ends after 2 of 3 entries; move the folder `"), "{refused}");
    // With the log restored, opening succeeds and the head identifies its last entry.
    std::fs::write(&log, &whole).unwrap();
    let audit = Audit::open_with(options, |_| ()).unwrap();
    assert_eq!(audit.unknown_end(), None);
    let content = std::fs::read_to_string(&log).unwrap();
    assert!(content.contains("is empty; entry 3, which is known elsewhere, is in the log"), "{content}");
}

#[tokio::test]
async fn an_unwritable_head_does_not_prevent_a_start() {
    let all = tempfile::tempdir().unwrap();
    let options = known_log(all.path(), 2).await;
    let head = options.head.clone().unwrap();
    std::fs::remove_file(&head).unwrap();
    std::fs::create_dir(&head).unwrap();
    for _ in 0..2 {
        let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
        let content = audit.unknown_end().unwrap();
        assert!(content.contains("cannot be read: it is a folder, not a regular file"), "{content}");
        audit.record(Entry::new(Event::Session, "x")).await.unwrap();
    }
}
