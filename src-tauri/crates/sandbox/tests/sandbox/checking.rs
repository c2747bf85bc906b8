//! Tests `--check`, which reports whether this machine supports sandboxes.

use std::process::{Command, Output};

use ironcurtain_sandbox::{Availability, check};

use crate::harness::{Fixture, supervisor};

/// Runs the check with a missing temporary folder, to show that the trial needs no temporary folder.
fn run_check(fixture: &Fixture, options: &[&str]) -> Output {
    let mut command = Command::new(supervisor());
    command.arg("--check").args(options).env("IRONCURTAIN_HOME", fixture.path("ours"));
    command.env("TMPDIR", fixture.path("missing")).output().unwrap()
}

#[test]
fn check_launches_a_trial() {
    let fixture = Fixture::new();
    let found = check(&supervisor(), &fixture.path("state"), true);
    assert!(found.usable, "{found:?}");
    assert_eq!((found.missing, found.fix_command), (vec![], None));
    assert_eq!(found.warnings.is_empty(), !rustix::process::getuid().is_root());
}

#[test]
fn text_and_json_reports_agree() {
    let fixture = Fixture::new();
    let words = run_check(&fixture, &["--allow-root"]);
    assert!(words.status.success());
    assert!(String::from_utf8(words.stdout).unwrap().starts_with("This machine can create sandboxes.\n"));
    let json = run_check(&fixture, &["--json", "--allow-root"]);
    let found = check(&supervisor(), &fixture.path("state"), true);
    assert_eq!(serde_json::from_slice::<Availability>(&json.stdout).unwrap(), found);
    let wrong = run_check(&fixture, &["--yaml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("usage: ironcurtain-sandbox --check"));
}

#[test]
fn root_is_reported_as_refused() {
    let found = run_check(&Fixture::new(), &[]);
    let output = String::from_utf8(found.stdout).unwrap();
    if rustix::process::getuid().is_root() {
        assert_eq!(found.status.code(), Some(1));
        assert!(output.contains("missing: refusing to run the sandbox as root"), "{output}");
    } else {
        assert_eq!(found.status.code(), Some(0));
        let limits = output.strip_prefix("This machine can create sandboxes.\nlimits\n").unwrap();
        let what: Vec<&str> =
            limits.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(what, ["memory", "processor time", "processes"]);
    }
}

#[test]
fn second_check_reuses_the_trial_folder() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        assert!(run_check(&fixture, &["--allow-root"]).status.success());
        let left = std::fs::read_dir(fixture.path("ours/state/sandboxes/trial")).unwrap();
        assert_eq!(left.count(), 0);
    }
    assert_eq!(
        std::fs::read_dir(fixture.dir.path()).unwrap().count(),
        2,
        "expected the session's folder and ours"
    );
}
