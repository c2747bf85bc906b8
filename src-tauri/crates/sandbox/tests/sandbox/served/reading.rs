//! Reading the files of a folder that the trusted process has made readable.

use super::*;
use crate::harness::eventually;

#[test]
fn files_of_a_readable_folder_are_read_without_asking_and_reported_once() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
    let link = shell.path("docs/link");
    std::os::unix::fs::symlink(shell.path("work/own"), &link).unwrap();
    shell.permit_all(1, vec![], vec![shell.path("docs"), shell.path("secret")]);
    assert_eq!(shell.run("cat docs/a docs/b docs/a"), "docs/adocs/bdocs/astatus 0\n");
    // Each file is reported before it is opened. The test's thread may take a moment to read the reports.
    let expected = [shell.path("docs/a"), shell.path("docs/b")];
    eventually("both files are reported", || shell.reads() == expected);
    assert_eq!(shell.asked(), []);
    // Neither changes, nor files outside, nor hidden files become accessible.
    for (command, refusal) in [
        ("echo x > docs/a", "Permission denied"),
        ("rm -f docs/a", "Permission denied"),
        ("cat notes.txt", "Permission denied"),
        ("cat docs/link", "Permission denied"),
        ("cat docs/../work/own", "Permission denied"),
        ("cat secret/key", "No such file or directory"),
    ] {
        let refused = shell.run(&format!("({command}) 2>&1"));
        assert!(refused.contains(refusal), "{command}: {refused}");
    }
    let asked = shell.asked();
    assert_eq!(asked.iter().filter(|(_, access)| *access == FileAccess::Read).count(), 3, "{asked:?}");
    assert_eq!(shell.run("exec 7< docs/b"), "status 0\n");
    shell.permit(2, vec![]);
    let held = shell.run("cat <&7 2>&1");
    assert!(held.contains("Input/output error"), "{held}");
    let again = shell.run("cat docs/b 2>&1");
    assert!(again.contains("Permission denied"), "{again}");
    assert_eq!((shell.asked().len(), shell.reads()), (1, expected.into()));
}
