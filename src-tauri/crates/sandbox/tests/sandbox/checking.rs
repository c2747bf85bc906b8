//! The program tells a person whether this machine can sandbox.

use std::process::{Command, Output};

use ironcurtain_sandbox::{Availability, check};

use crate::harness::{Place, supervisor};

/// Tells of a machine whose temporary folder cannot be used: the trial needs none, so it leaves nothing there.
fn told(place: &Place, options: &[&str]) -> Output {
    let mut command = Command::new(supervisor());
    command.arg("--check").args(options).env("IRONCURTAIN_HOME", place.path("ours"));
    command.env("TMPDIR", place.path("missing")).output().unwrap()
}

#[test]
fn the_machine_is_tried() {
    let place = Place::new();
    let found = check(&supervisor(), &place.path("state"), true);
    assert!(found.usable, "{found:?}");
    assert_eq!((found.missing, found.fix_command), (vec![], None));
    assert_eq!(found.warnings.is_empty(), !rustix::process::getuid().is_root());
}

#[test]
fn the_program_says_the_same_in_words_and_as_json() {
    let place = Place::new();
    let words = told(&place, &["--allow-root"]);
    assert!(words.status.success());
    assert!(String::from_utf8(words.stdout).unwrap().starts_with("This machine can create sandboxes.\n"));
    let json = told(&place, &["--json", "--allow-root"]);
    let found = check(&supervisor(), &place.path("state"), true);
    assert_eq!(serde_json::from_slice::<Availability>(&json.stdout).unwrap(), found);
    let wrong = told(&place, &["--yaml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("usage: ironcurtain-sandbox --check"));
}

#[test]
fn root_is_told_that_it_is_not_allowed() {
    let found = told(&Place::new(), &[]);
    let said = String::from_utf8(found.stdout).unwrap();
    if rustix::process::getuid().is_root() {
        assert_eq!(found.status.code(), Some(1));
        assert!(said.contains("missing: the sandbox does not run as root"), "{said}");
    } else {
        assert_eq!(found.status.code(), Some(0));
        let limits = said.strip_prefix("This machine can create sandboxes.\nlimits\n").unwrap();
        let what: Vec<&str> =
            limits.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(what, ["memory", "processor time", "processes"]);
    }
}

#[test]
fn tried_again_it_uses_the_folder_of_the_first_trial() {
    let place = Place::new();
    for _ in 0..2 {
        assert!(told(&place, &["--allow-root"]).status.success());
        let left = std::fs::read_dir(place.path("ours/state/sandboxes/trial")).unwrap();
        assert_eq!(left.count(), 0);
    }
    assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 2, "the session's and ours");
}
