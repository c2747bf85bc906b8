//! Calls in a served folder give the same results as on the disk, except for a documented list.

use super::*;

const CALLS: &str = include_str!("calls.py");

const RANDOM_CALLS: &str = include_str!("random_calls.py");

/// Calls whose result differs, with the results on the disk and in a served folder: `docs/guide/run-an-agent.md` explains them.
const DIFFERENT: [(&str, &str, &str); 5] = [
    ("link symlink", "(None, 'file')", "EPERM"),
    // Nothing in a run gains rights.
    ("change mode to run as owner", "(None, ('-rwsr-xr-x', 1, 7))", "EPERM"),
    ("unnamed file", "open", "ENOTSUP"),
    ("extended attribute", "None", "ENOTSUP"),
    ("missing extended attribute", "ENODATA", "ENOTSUP"),
];

/// Runs a script on the disk and in a served folder, and returns the lines of both.
fn on_disk_and_served(script: &str, arguments: &str) -> [Vec<String>; 2] {
    let place = Place::new();
    for folder in ["disk", "served"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    fs::write(place.path("script.py"), script).unwrap();
    let command = format!("/usr/bin/python3 -B ../script.py {arguments}");
    let disk = Command::new("sh").args(["-c", &command]).current_dir(place.path("disk")).output().unwrap();
    assert!(disk.status.success(), "{}", String::from_utf8_lossy(&disk.stderr));
    let mut shell = Shell::allowed(place);
    let served = shell.run(&format!("cd served && {command} 2>&1"));
    let served = served.strip_suffix("status 0\n").unwrap_or_else(|| panic!("{served}"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    [lines(&String::from_utf8(disk.stdout).unwrap()), lines(served)]
}

#[test]
fn calls_give_the_same_results_as_on_the_disk() {
    let [disk, served] = on_disk_and_served(CALLS, "");
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

#[test]
fn random_changes_leave_the_same_files_as_on_the_disk() {
    for seed in 1..=4 {
        let [disk, served] = on_disk_and_served(RANDOM_CALLS, &format!("{seed} 500"));
        assert!(disk.len() > 500);
        let first = disk.iter().zip(&served).find(|(disk, served)| disk != served);
        assert_eq!(first, None, "seed {seed}");
        assert_eq!(disk.len(), served.len(), "seed {seed}");
    }
}
