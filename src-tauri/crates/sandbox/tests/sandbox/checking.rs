//! The program tells a person whether this machine can sandbox.

use std::process::Command;

use ironcurtain_sandbox::{Availability, check};

use crate::harness::supervisor;

#[test]
fn the_machine_is_tried() {
    let found = check(&supervisor(), true);
    assert!(found.usable, "{found:?}");
    assert_eq!((found.missing, found.fix_command), (vec![], None));
    assert_eq!(found.warnings.is_empty(), !rustix::process::getuid().is_root());
}

#[test]
fn the_program_says_the_same_in_words_and_as_json() {
    let words = Command::new(supervisor()).args(["--check", "--allow-root"]).output().unwrap();
    assert!(words.status.success());
    assert!(String::from_utf8(words.stdout).unwrap().starts_with("This machine can sandbox.\n"));
    let json = Command::new(supervisor()).args(["--check", "--json", "--allow-root"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Availability>(&json.stdout).unwrap(), check(&supervisor(), true));
    let wrong = Command::new(supervisor()).args(["--check", "--yaml"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("usage: ironcurtain-sandbox --check"));
}

#[test]
fn root_is_told_that_it_is_not_allowed() {
    let found = Command::new(supervisor()).arg("--check").output().unwrap();
    let said = String::from_utf8(found.stdout).unwrap();
    if rustix::process::getuid().is_root() {
        assert_eq!(found.status.code(), Some(1));
        assert!(said.contains("missing: the sandbox does not run as root"), "{said}");
    } else {
        assert_eq!(found.status.code(), Some(0));
        let limits = said.strip_prefix("This machine can sandbox.\nlimits\n").unwrap();
        let what: Vec<&str> =
            limits.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(what, ["memory", "processor time", "processes"]);
    }
}
