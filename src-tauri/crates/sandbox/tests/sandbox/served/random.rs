//! Tests that random calls in a granted folder leave the same files as on disk. `cargo xtask soak files` repeats this
//! test with other seeds.

use ironcurtain_testkit::seed::seed;

use super::{
    folders::{WAYS, folders, on_disk_and, shell_in},
    *,
};
use crate::harness::tool;

const CALLS: &str = include_str!("random_calls.py");

#[test]
fn random_calls_leave_the_same_files_as_on_the_disk() {
    for way in WAYS {
        for seed in [seed(), seed() + 1_000_000] {
            let [disk, inside] = on_disk_and(way, CALLS, &format!("{seed} 500"));
            assert!(disk.len() > 500);
            let first = disk.iter().zip(&inside).find(|(disk, inside)| disk != inside);
            assert_eq!(first, None, "{way:?}, seed {seed}");
            assert_eq!(disk.len(), inside.len(), "{way:?}, seed {seed}");
        }
    }
}

/// Settings of fsx: every operation that a sandbox allows, on a file larger than one request.
const SETTINGS: &str = "
flen = 600000

[weights]
close_open = 1.0
invalidate = 1.0
mapread = 10.0
mapwrite = 10.0
read = 10.0
write = 10.0
truncate = 5.0
fsync = 1.0
fdatasync = 1.0
posix_fallocate = 2.0
punch_hole = 2.0
posix_fadvise = 1.0
copy_file_range = 2.0
";

#[test]
fn fsx_reads_what_it_wrote_and_leaves_it_on_the_disk() {
    for way in WAYS {
        let fixture = folders();
        fs::copy(tool("fsx"), fixture.path("fsx")).unwrap();
        fs::write(fixture.path("settings.toml"), SETTINGS).unwrap();
        let mut shell = shell_in(fixture, way);
        // Runs two processes at a time, each on its own file.
        let (first, second) = (seed(), seed() + 1_000_000);
        let fsx = |name, seed| format!("../fsx -f ../settings.toml -N 2000 -S {seed} {name}");
        let (a, b) = (fsx("a", first), fsx("b", second));
        let output = shell.run(&format!("({a}) 2>&1 & a=$!; ({b}) 2>&1 & b=$!; wait $a && wait $b"));
        assert!(output.ends_with("status 0\n"), "{way:?}, seeds {first} and {second}: {output}");
        for name in ["a", "b"] {
            let inside = shell.run(&format!("sha256sum < {name}"));
            let disk = Command::new("sha256sum").arg(shell.path(&format!("inside/{name}"))).output().unwrap();
            let disk = String::from_utf8(disk.stdout).unwrap();
            assert_eq!(inside.split(' ').next(), disk.split(' ').next(), "{way:?}: {name}");
        }
    }
}
