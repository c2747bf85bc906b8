//! Compares a folder on disk with a served or mounted folder. Programs must get the same results in both.

use super::*;

/// Kind of access that a sandbox has to a granted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Served,
    Mounted,
}

pub(super) const WAYS: [Way; 2] = [Way::Served, Way::Mounted];

/// Creates a test directory with an empty folder `disk` and an empty folder `inside` for the sandbox.
pub(super) fn folders() -> Fixture {
    let fixture = Fixture::new();
    for folder in ["disk", "inside"] {
        fs::create_dir(fixture.path(folder)).unwrap();
    }
    fixture
}

/// Starts a shell in the granted folder `inside`.
pub(super) fn shell_in(fixture: Fixture, way: Way) -> Shell {
    let inside = fixture.path("inside");
    let mounts: &[&str] = match way {
        Way::Served => &[],
        Way::Mounted => &[&inside],
    };
    let mut shell = Shell::granted(fixture, mounts);
    assert_eq!(shell.run("cd inside"), "status 0\n");
    shell
}

/// Runs a Python script in a folder on disk and in a sandboxed folder, and returns the output lines of both.
pub(super) fn on_disk_and(way: Way, script: &str, arguments: &str) -> [Vec<String>; 2] {
    let fixture = folders();
    fs::write(fixture.path("script.py"), script).unwrap();
    let command = format!("/usr/bin/python3 -B ../script.py {arguments}");
    let disk = Command::new("sh").args(["-c", &command]).current_dir(fixture.path("disk")).output().unwrap();
    assert!(disk.status.success(), "{}", String::from_utf8_lossy(&disk.stderr));
    let inside = shell_in(fixture, way).run(&format!("{command} 2>&1"));
    let inside = inside.strip_suffix("status 0\n").unwrap_or_else(|| panic!("{way:?}: {inside}"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    [lines(&String::from_utf8(disk.stdout).unwrap()), lines(inside)]
}
