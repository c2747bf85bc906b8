//! Finds the processes in a sandbox.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;

/// Returns the processes in the sandbox: descendants of the supervisor that are in another PID namespace. `is_in_time`
/// is called for each thread. If it returns `false`, the list is incomplete.
pub fn sandbox_processes(supervisor: u32, is_in_time: &dyn Fn() -> bool) -> Vec<u32> {
    let (mut found, mut seen) = (vec![supervisor], HashSet::from([supervisor]));
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        let children = children(process, is_in_time).into_iter().filter(|child| seen.insert(*child));
        found.extend(children);
        at += 1;
    }
    found.retain(|process| is_in_time() && is_in_sandbox(*process, supervisor));
    found
}

/// Returns `true` if a process runs in the sandbox of this supervisor.
pub fn is_in_sandbox(process: u32, supervisor: u32) -> bool {
    let namespace = namespace(process);
    namespace.is_some() && namespace != self::namespace(supervisor)
}

fn namespace(process: u32) -> Option<OsString> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok().map(Into::into)
}

/// Returns the child processes of all threads of a process.
fn children(process: u32, is_in_time: &dyn Fn() -> bool) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let threads = threads.take_while(|_| is_in_time());
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
