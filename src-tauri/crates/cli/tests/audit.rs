//! `ironcurtain audit verify` without a trusted process.

use std::path::Path;
use std::process::Command;

#[test]
fn without_a_trusted_process_the_log_is_verified_and_a_change_of_it_is_told() {
    let home = tempfile::tempdir().unwrap();
    let audit = home.path().join("ic/state/audit");
    std::fs::create_dir_all(&audit).unwrap();
    let log = audit.join("audit.jsonl");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/fixtures/without-grounds.jsonl");
    let written = std::fs::read_to_string(fixture).unwrap();
    let verify = |text: &str| {
        std::fs::write(&log, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ironcurtain"))
            .args(["audit", "verify"])
            .env("HOME", home.path())
            .env("IRONCURTAIN_HOME", home.path().join("ic"))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(verify(&written), (Some(0), "The audit log is whole: 20 entries.\n".to_owned()));
    let changed = written.replacen("approved: by the team", "approved: by nobody", 1);
    let told = "THE AUDIT LOG WAS CHANGED after 3 entries: line 4: its content does not match its hash\n";
    assert_eq!(verify(&changed), (Some(1), told.to_owned()));
}
