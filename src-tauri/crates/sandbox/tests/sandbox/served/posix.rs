//! Tests that calls in a granted folder have the same results as on disk, apart from documented differences.

use super::{
    folders::{WAYS, Way, folders, on_disk_and, shell_in},
    *,
};
use crate::harness::{as_ordinary_user, tool};

const CALLS: &str = include_str!("calls.py");

/// Calls with different results: the call, its result on disk, and its result in a served folder.
/// `docs/guide/run-an-agent.md` explains them.
const DIFFERENT: [(&str, &str, &str); 5] = [
    ("link symlink", "(None, 'file')", "EPERM"),
    // Programs in a run cannot gain privileges.
    ("change mode to run as owner", "(None, ('-rwsr-xr-x', 1, 7))", "EPERM"),
    ("unnamed file", "open", "ENOTSUP"),
    ("extended attribute", "None", "ENOTSUP"),
    ("missing extended attribute", "ENODATA", "ENOTSUP"),
];

#[test]
fn calls_give_the_same_results_as_on_the_disk() {
    for way in WAYS {
        let [disk, inside] = on_disk_and(way, CALLS, "");
        assert!(disk.len() > 90, "{}", disk.len());
        let different: Vec<(&String, &String)> =
            disk.iter().zip(&inside).filter(|(disk, inside)| disk != inside).collect();
        let of_way: &[(&str, &str, &str)] = match way {
            Way::Served => &DIFFERENT,
            Way::Mounted => &DIFFERENT[1..2],
        };
        let expected: Vec<(String, String)> = of_way
            .iter()
            .map(|(name, disk, inside)| (format!("{name}: {disk}"), format!("{name}: {inside}")))
            .collect();
        let different: Vec<(String, String)> =
            different.into_iter().map(|(disk, inside)| (disk.clone(), inside.clone())).collect();
        assert_eq!(different, expected, "{way:?}");
        assert_eq!(disk.len(), inside.len(), "{way:?}");
    }
}

/// Settings of pjdfstest. The configured users must exist, although cases for an ordinary user do not use them.
const SETTINGS: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}

[settings]
naptime = 0.02

[dummy_auth]
entries = [["root", "root"], ["root", "root"]]
"#;

/// Name parts of cases that pass on disk and fail in a sandbox. `docs/guide/run-an-agent.md` explains them.
const FAIL: [&str; 1] = ["socket"];

/// Additional cases that fail in a served folder, where a pipe has only one name.
const FAIL_SERVED: [&str; 5] = [
    "link::changed_ctime_success::fifo",
    "link::remove_link::fifo",
    "rename::preserve_metadata::fifo",
    "rename::to_multiply_linked::fifo",
    "unlink::update_ctime_success::fifo",
];

/// Cases that create a pipe with `mknod` but do not mention it in their names.
const MKNOD_PIPES: [&str; 2] = ["mknod::changed_time_fields_success", "mknod::permission_bits_from_mode"];

#[test]
fn pjdfstest_passes_the_cases_that_pass_on_the_disk() {
    for way in WAYS {
        let fixture = folders();
        fs::copy(tool("pjdfstest"), fixture.path("pjdfstest")).unwrap();
        fs::write(fixture.path("settings.toml"), SETTINGS).unwrap();
        let mut command = as_ordinary_user(&fixture, "disk");
        command.args(["../pjdfstest", "-c", "../settings.toml", "-p", "."]).env("NO_COLOR", "1");
        let output = command.current_dir(fixture.path("disk")).output().unwrap();
        let mut on_disk = passed(&String::from_utf8(output.stdout).unwrap());
        // Programs derive the maximum number of hard links from the file system type.
        on_disk.retain(|case| case != "link::link_count_max");
        // Pipes in a mounted folder are masked soon after they appear.
        let has_pipe = |case: &str| case.contains("fifo") || MKNOD_PIPES.contains(&case);
        on_disk.retain(|case| way == Way::Served || !has_pipe(case));
        assert!(on_disk.len() > 100, "{}", String::from_utf8_lossy(&output.stderr));
        // Cases that need root are not run.
        let exact: Vec<String> = on_disk.iter().map(|case| format!("pjdfstest::tests::{case}\n")).collect();
        fs::write(fixture.path("cases"), exact.concat()).unwrap();
        let run = "xargs ../pjdfstest -c ../settings.toml -p . --exact < ../cases 2>&1";
        let output = shell_in(fixture, way).run(run);
        let inside = passed(&output);
        let mut failed: Vec<&String> = on_disk.iter().filter(|case| !inside.contains(case)).collect();
        let served = FAIL_SERVED.iter().filter(|_| way == Way::Served);
        for part in FAIL.iter().chain(served) {
            let before = failed.len();
            failed.retain(|case| !case.contains(part));
            assert_ne!(failed.len(), before, "{way:?}: `{part}` passes");
        }
        assert!(failed.is_empty(), "{way:?}: {failed:#?}\n{output}");
    }
}

/// Returns the names of the passed cases.
fn passed(output: &str) -> Vec<String> {
    let cases = output.lines().filter_map(|line| line.trim_end().strip_suffix(" ok"));
    cases.map(|case| case.trim().to_owned()).collect()
}
