//! Identifies the connecting client from kernel data: the process, its executable and its ancestors.
//!
//! The name that the client claims is kept separately and never affects a decision.

use ironcurtain_grants::{Client, UNKNOWN};
use ironcurtain_protocol::{ClientView, ProcessView};
use std::path::{Path, PathBuf};

/// Maximum number of ancestors to follow.
const MAX_CHAIN_LEN: usize = 12;

/// Programs that only launch others. The client is the first ancestor that is not in this list.
const LAUNCHERS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "fish", "env", "busybox", "ironcurtain-shim", "sudo"];

/// Display name of a client with a hidden executable. The process name that the client claims appears only among the
/// ancestors.
const HIDDEN_NAME: &str = "A program with a hidden executable";

/// Identifies the client that started the shim. `pid` is the shim's process id, and `label` is the client's
/// configured name.
#[must_use]
pub fn identify_client(pid: u32, label: Option<String>) -> Client {
    from_processes(&process_chain(pid), std::fs::read_link(format!("/proc/{pid}/cwd")).ok(), label)
}

/// Returns the process and its visible ancestors.
fn process_chain(pid: u32) -> Vec<ProcessView> {
    let mut found = Vec::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|p| *p > 0 && found.len() < MAX_CHAIN_LEN) {
        let Some((name, parent)) = read_stat(pid) else { break };
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        found.push(ProcessView { pid, exe: exe.map(|p| p.to_string_lossy().into_owned()), name });
        next = Some(parent);
    }
    found
}

/// Reads the name and parent of a process. According to proc(5), the name is enclosed in parentheses and may itself
/// contain parentheses.
fn read_stat(pid: u32) -> Option<(String, u32)> {
    let text = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

fn from_processes(processes: &[ProcessView], cwd: Option<PathBuf>, label: Option<String>) -> Client {
    let ancestors = processes.get(1..).unwrap_or_default();
    // A process with a hidden executable is never a launcher, because its process name is unverified.
    let is_launcher =
        |p: &ProcessView| program_name(p).is_some_and(|name| LAUNCHERS.contains(&name.as_str()));
    let index = ancestors.iter().position(|p| !is_launcher(p));
    let chain = ancestors.get(index.unwrap_or(0)..).unwrap_or_default().to_vec();
    let client = index.and_then(|index| ancestors.get(index));
    let exe = client.and_then(|p| p.exe.clone());
    Client {
        key: exe.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        view: ClientView {
            name: client.and_then(program_name).unwrap_or_else(|| HIDDEN_NAME.to_owned()),
            exe,
            chain,
            cwd: cwd.map(|p| p.to_string_lossy().into_owned()),
            claimed_name: None,
            label,
        },
    }
}

/// Returns the file name of the process's executable, or `None` if the executable is hidden.
fn program_name(process: &ProcessView) -> Option<String> {
    let file = Path::new(process.exe.as_deref()?).file_name()?.to_string_lossy();
    Some(file.trim_end_matches(" (deleted)").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, exe: Option<&str>) -> ProcessView {
        ProcessView { pid, exe: exe.map(Into::into), name: "comm".into() }
    }

    #[test]
    fn the_client_is_the_first_program_that_is_not_a_launcher() {
        let chain = [
            process(9, Some("/opt/ironcurtain-shim")),
            process(8, Some("/usr/bin/bash")),
            process(7, Some("/opt/claude/claude (deleted)")),
            process(6, Some("/usr/bin/zsh")),
        ];
        let client = from_processes(&chain, Some("/home/u/app".into()), None);
        assert_eq!(
            (client.key.as_str(), client.view.name.as_str()),
            ("/opt/claude/claude (deleted)", "claude")
        );
        assert_eq!(client.view.chain, chain[2..]);
        assert_eq!(client.view.cwd.as_deref(), Some("/home/u/app"));
    }

    #[test]
    fn a_program_with_a_hidden_executable_gets_a_generic_name() {
        let shim = process(9, Some("/opt/ironcurtain-shim"));
        let hidden = |name: &str| ProcessView { name: name.into(), ..process(8, None) };
        for own in ["Claude Code", "bash"] {
            let chain = [shim.clone(), hidden(own), process(7, Some("/opt/claude/claude"))];
            let client = from_processes(&chain, None, None);
            assert_eq!(
                (client.key.as_str(), client.view.name.as_str(), client.view.exe),
                ("unknown", HIDDEN_NAME, None),
                "{own}"
            );
        }
        let shown = [shim, process(8, Some("/usr/bin/bash")), process(7, Some("/opt/claude/claude"))];
        assert_eq!(from_processes(&shown, None, None).view.name, "claude");
        assert_eq!(from_processes(&[], None, None).view.name, HIDDEN_NAME);
    }

    #[test]
    fn a_live_process_shows_its_parents() {
        let me = std::process::id();
        let found = process_chain(me);
        let exe = std::env::current_exe().unwrap();
        assert_eq!((found[0].pid, found[0].exe.as_deref()), (me, exe.to_str()));
        assert_eq!(found[1].pid, std::os::unix::process::parent_id());
    }
}
