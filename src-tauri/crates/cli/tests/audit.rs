//! Tests verifying, searching and exporting the audit log without a trusted process.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Output};

#[test]
fn verify_detects_changes_without_a_trusted_process() {
    let home = tempfile::tempdir().unwrap();
    let audit = home.path().join("ic/state/audit");
    std::fs::create_dir_all(&audit).unwrap();
    let log = audit.join("audit.jsonl");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/fixtures/without-grounds.jsonl");
    let written = std::fs::read_to_string(fixture).unwrap();
    let last: serde_json::Value = serde_json::from_str(written.lines().last().unwrap()).unwrap();
    let head = serde_json::json!({ "entries": 20, "head": last["hash"] }).to_string();
    let verify = |text: &str, head: &str| {
        std::fs::write(&log, text).unwrap();
        std::fs::write(home.path().join("ic/state/audit-head.json"), head).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ironcurtain"))
            .args(["audit", "verify"])
            .env("HOME", home.path())
            .env("IRONCURTAIN_HOME", home.path().join("ic"))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, report) = verify(&written, &head);
    assert!(code == Some(0) && report.starts_with("The audit log is intact: 20 entries; "), "{report}");
    let changed = written.replacen("approved: by the team", "approved: by nobody", 1);
    let report = "THE AUDIT LOG WAS CHANGED after 3 entries: line 4: its content does not match its hash\n";
    assert_eq!(verify(&changed, &head), (Some(1), report.to_owned()));
    let (code, report) = verify(&written, &head.repeat(2));
    let wanted = "THE END OF THE AUDIT LOG IS UNKNOWN: the head file `";
    assert!(code == Some(1) && report.starts_with(wanted), "{report}");
    assert!(
        report.contains("/audit-head.json` is damaged: ") && report.contains("Its 20 entries"),
        "{report}"
    );
}

/// Creates a home with a log in an earlier format, and a function that runs the command there.
fn home_with_log() -> (tempfile::TempDir, impl Fn(&[&str]) -> Output) {
    let home = tempfile::tempdir().unwrap();
    let audit = home.path().join("ic/state/audit");
    std::fs::create_dir_all(&audit).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/fixtures/without-grounds.jsonl");
    std::fs::copy(fixture, audit.join("audit.jsonl")).unwrap();
    let dir = home.path().to_path_buf();
    let run = move |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_ironcurtain"))
            .args(arguments)
            .env("HOME", &dir)
            .env("IRONCURTAIN_HOME", dir.join("ic"))
            .output()
            .unwrap()
    };
    (home, run)
}

#[test]
fn entries_are_searched_and_exported_without_a_trusted_process() {
    let (home, run) = home_with_log();
    let output_text = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = output_text(&["audit", "search", "--decision", "deny", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["seq"]), (1, &serde_json::json!(12)));
    let report = output_text(&["audit", "search", "approved", "team", "--limit", "1"]);
    assert!(report.contains("Allowed: approved: by the team") && report.contains("--limit"), "{report}");
    assert_eq!(output_text(&["audit", "search", "--server", "nobody"]), "No matching entries.\n");
    assert_eq!(output_text(&["audit", "search", "--since", "1m"]), "No matching entries.\n");
    let all = output_text(&["audit", "export"]);
    assert_eq!(all.lines().count(), 20);
    let table = home.path().join("table.csv");
    let export =
        ["audit", "export", "--format", "csv", "--decision", "allow", "--output", table.to_str().unwrap()];
    output_text(&export);
    let written = std::fs::read_to_string(&table).unwrap();
    assert!(
        written.starts_with("seq,timestamp,event,session,client,requestId,serverName,toolName,"),
        "{written}"
    );
    assert!(written.contains(",allow,docs,approved: by the team,"), "{written}");
    assert!(!run(&export).status.success(), "what is there is not written over");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&table).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn verify_detects_a_truncated_log() {
    let (home, run) = home_with_log();
    let head = home.path().join("ic/state/audit-head.json");
    let log = std::fs::read_to_string(home.path().join("ic/state/audit/audit.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let verify = |entries: u64| {
        let known = serde_json::json!({ "entries": entries, "head": last["hash"] });
        std::fs::write(&head, known.to_string()).unwrap();
        let output = run(&["audit", "verify"]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, report) = verify(20);
    let wanted = "The audit log is intact: 20 entries; the newest is confirmed by `audit-head.json`";
    assert!(code == Some(0) && report.starts_with(wanted), "{report}");
    let report = "THE AUDIT LOG WAS CHANGED after 20 entries: it ends after 20 of 21 entries\n";
    assert_eq!(verify(21), (Some(1), report.to_owned()));
}
