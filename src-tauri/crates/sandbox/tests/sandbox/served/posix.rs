//! Tests that calls have the same results in a served folder as on the disk, except for a documented list of calls.

use super::*;

const CALLS: &str = include_str!("calls.py");

/// Calls whose results differ, with the result on the disk and in a served folder. `docs/guide/run-an-agent.md`
/// explains them.
const DIFFERENT: [(&str, &str, &str); 5] = [
    ("link symlink", "(None, 'file')", "EPERM"),
    // No program in a run can gain rights.
    ("change mode to run as owner", "(None, ('-rwsr-xr-x', 1, 7))", "EPERM"),
    ("unnamed file", "open", "ENOTSUP"),
    ("extended attribute", "None", "ENOTSUP"),
    ("missing extended attribute", "ENODATA", "ENOTSUP"),
];

/// Runs a script on the disk and in a served folder. Returns the output lines of both runs.
fn on_disk_and_served(script: &str) -> [Vec<String>; 2] {
    let place = Place::new();
    for folder in ["disk", "served"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    fs::write(place.path("script.py"), script).unwrap();
    let command = "/usr/bin/python3 -B ../script.py";
    let disk = Command::new("sh").args(["-c", command]).current_dir(place.path("disk")).output().unwrap();
    assert!(disk.status.success(), "{}", String::from_utf8_lossy(&disk.stderr));
    let mut shell = Shell::allowed(place);
    let served = shell.run(&format!("cd served && {command} 2>&1"));
    let served = served.strip_suffix("status 0\n").unwrap_or_else(|| panic!("{served}"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    [lines(&String::from_utf8(disk.stdout).unwrap()), lines(served)]
}

#[test]
fn calls_give_the_same_results_as_on_the_disk() {
    let [disk, served] = on_disk_and_served(CALLS);
    assert!(disk.len() > 90, "{}", disk.len());
    let different: Vec<(String, String)> = disk
        .iter()
        .zip(&served)
        .filter(|(disk, served)| disk != served)
        .map(|(a, b)| (a.clone(), b.clone()))
        .collect();
    let expected =
        DIFFERENT.map(|(name, disk, served)| (format!("{name}: {disk}"), format!("{name}: {served}")));
    assert_eq!(different, expected);
    assert_eq!(disk.len(), served.len());
}
