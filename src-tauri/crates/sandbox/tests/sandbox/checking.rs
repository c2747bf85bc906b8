//! Tests `--check`, which reports whether this machine supports sandboxes.

use std::process::{Command, Output};

use ironcurtain_sandbox::{Availability, check};

use crate::harness::{Place, supervisor};

/// Runs the check with a missing temporary folder, to show that the trial needs no temporary folder.
fn run_check(place: &Place, options: &[&str]) -> Output {
    let mut command = Command::new(supervisor());
    command.arg("--check").args(options).env("IRONCURTAIN_HOME", place.path("ours"));
    command.env("TMPDIR", place.path("missing")).output().unwrap()
}

#[test]
fn check_launches_a_trial() {
    let place = Place::new();
    let found = check(&supervisor(), &place.path("state"), true);
    assert!(found.usable, "{found:?}");
    assert_eq!((found.missing, found.fix_command), (vec![], None));
    assert_eq!(found.warnings.is_empty(), !rustix::process::getuid().is_root());
}

#[test]
fn text_and_json_reports_agree() {
    let place = Place::new();
    let words = run_check(&place, &["--allow-root"]);
    assert!(words.status.success());
    assert!(String::from_utf8(words.stdout).unwrap().starts_with("This machine can create sandboxes.\n"));
    let json = run_check(&place, &["--json", "--allow-root"]);
    let found = check(&supervisor(), &place.path("state"), true);
    assert_eq!(serde_json::from_slice::<Availability>(&json.stdout).unwrap(), found);
    let wrong = run_check(&place, &["--yaml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("usage: ironcurtain-sandbox --check"));
}

#[test]
fn root_is_reported_as_refused() {
    let found = run_check(&Place::new(), &[]);
    let said = String::from_utf8(found.stdout).unwrap();
    if rustix::process::getuid().is_root() {
        assert_eq!(found.status.code(), Some(1));
        assert!(said.contains("missing: refusing to run the sandbox as root"), "{said}");
    } else {
        assert_eq!(found.status.code(), Some(0));
        let limits = said.strip_prefix("This machine can create sandboxes.\nlimits\n").unwrap();
        let what: Vec<&str> =
            limits.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(what, ["memory", "processor time", "processes"]);
    }
}

#[test]
fn second_check_reuses_the_trial_folder() {
    let place = Place::new();
    for _ in 0..2 {
        assert!(run_check(&place, &["--allow-root"]).status.success());
        let left = std::fs::read_dir(place.path("ours/state/sandboxes/trial")).unwrap();
        assert_eq!(left.count(), 0);
    }
    assert_eq!(
        std::fs::read_dir(place.dir.path()).unwrap().count(),
        2,
        "expected the session's folder and ours"
    );
}
