//! Finds the programs in a sandbox that use a folder, to show their names to the user. Security does not depend on the
//! result: unmounting fails while a program uses the folder.
//!
//! - The programs can slow down the search, so the search has a time limit.

use super::processes::sandbox_processes;
use ironcurtain_paths::CanonicalPath;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum number of programs to name.
const MAX_COUNT: usize = 3;

/// Time limit for a search, which delays a revocation.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Returns the names of the programs whose working directory is in a folder, or that have a file in it open or mapped.
/// The list is incomplete if the time limit is reached.
pub(super) async fn holders(supervisor: u32, folder: &CanonicalPath) -> Vec<String> {
    let (folder, deadline) = (folder.clone(), Instant::now() + TIMEOUT);
    let find = move || find(supervisor, &folder, &|| Instant::now() < deadline);
    // A program can also block a single system call. Starting the search fails only while the daemon is exiting.
    tokio::time::timeout(2 * TIMEOUT, tokio::task::spawn_blocking(find))
        .await
        .map_or_else(|_| Vec::new(), Result::unwrap_or_default)
}

/// Searches until [`MAX_COUNT`] programs are found or `is_in_time` returns `false`.
fn find(supervisor: u32, folder: &CanonicalPath, is_in_time: &dyn Fn() -> bool) -> Vec<String> {
    let is_inside = |path: PathBuf| path.starts_with(folder.as_path());
    let holds = |process: &u32| {
        let links = |folder: &str| {
            let entries = fs::read_dir(format!("/proc/{process}/{folder}")).into_iter().flatten().flatten();
            entries.take_while(|_| is_in_time()).filter_map(|entry| fs::read_link(entry.path()).ok())
        };
        let own = ["cwd", "root", "exe"].into_iter().filter(|_| is_in_time());
        let own = own.filter_map(|link| fs::read_link(format!("/proc/{process}/{link}")).ok());
        own.chain(links("fd")).chain(links("map_files")).any(is_inside)
    };
    let name = |process: u32| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let mut names: Vec<String> = Vec::new();
    for name in sandbox_processes(supervisor, is_in_time).into_iter().filter(holds).filter_map(name) {
        let name = name.trim_end().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == MAX_COUNT {
            break;
        }
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::find;
    use ironcurtain_paths::CanonicalPath;
    use std::cell::Cell;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    /// A program in another PID namespace that works in a folder and has many files open.
    struct Holder(Child);

    impl Drop for Holder {
        fn drop(&mut self) {
            // Both calls fail only if the process has exited.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_search_stops_at_its_time_limit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = CanonicalPath::assume_canonical(dir.path().to_str().unwrap()).unwrap();
        let script = "import os, time\nfiles = [open('/dev/null') for _ in range(500)]\nos.chdir(os.environ['HELD'])\nprint('ready', flush=True)\ntime.sleep(600)";
        let mut command = Command::new("unshare");
        command.args(["--user", "--pid", "--fork", "--kill-child", "python3", "-c", script]);
        let holder = command.env("HELD", dir.path()).stdout(Stdio::piped()).spawn();
        let mut holder = Holder(holder.unwrap());
        let mut ready = String::new();
        BufReader::new(holder.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        let search = |most: usize, folder: &CanonicalPath| {
            let checks = Cell::new(0);
            let is_in_time = || {
                checks.set(checks.get() + 1);
                checks.get() <= most
            };
            (find(holder.0.id(), folder, &is_in_time), checks.get())
        };
        assert_eq!(search(usize::MAX, &folder).0, ["python3"]);
        // The search stops before the list of processes is complete.
        assert_eq!(search(0, &folder).0, Vec::<String>::new());
        // The time is checked at each open file, so the search stops before it has checked all of them.
        let elsewhere = CanonicalPath::assume_canonical("/nowhere").unwrap();
        let (_, checks) = search(usize::MAX, &elsewhere);
        assert!(checks > 500, "{checks}");
        let (_, checks) = search(100, &elsewhere);
        assert!((100..120).contains(&checks), "{checks}");
    }
}
