//! Names of the programs that wait for permission. For display only, because programs choose their own names.

use std::{fs, io::Read, os::unix::ffi::OsStrExt, path::Path};

/// Maximum number of names: those of the program and its ancestors.
const MAX_COUNT: usize = 6;

/// Maximum length of a command line in bytes.
const MAX_LEN: u64 = 200;

/// Name of the inner process that starts the run's program, truncated to 15 characters by Linux.
const STARTER_NAME: &str = "ironcurtain-san";

/// Returns the names of a thread's program and its ancestors in the sandbox, oldest first. The program's name includes
/// its arguments.
pub(super) fn programs(thread: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut next = Some(thread);
    while let Some(process) = next.filter(|_| found.len() < MAX_COUNT) {
        let Some(status) = Status::read(process) else { break };
        // The init of the sandbox and the process that starts the run's program belong to IronCurtain.
        let is_starter = || {
            status.name == STARTER_NAME && Status::read(status.parent).is_some_and(|parent| parent.is_init)
        };
        if status.is_init || is_starter() {
            break;
        }
        found.push(if found.is_empty() { command(process).unwrap_or(status.name) } else { status.name });
        next = Some(status.parent).filter(|parent| *parent != 0);
    }
    found.dedup();
    found.reverse();
    found
}

struct Status {
    name: String,
    parent: u32,
    is_init: bool,
}

impl Status {
    fn read(process: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // The last number is the id in the innermost pid namespace.
        let inner = field("NSpid:")?.split_whitespace().collect::<Vec<_>>();
        let is_init = inner.len() < 2 || inner.last() == Some(&"1");
        Some(Self { name: field("Name:")?.to_owned(), parent: field("PPid:")?.parse().ok()?, is_init })
    }
}

/// Returns the start of a process's command line.
fn command(process: u32) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(format!("/proc/{process}/cmdline")).ok()?.take(MAX_LEN).read_to_end(&mut bytes).ok()?;
    command_of(&bytes)
}

fn command_of(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let program =
        Path::new(std::ffi::OsStr::from_bytes(words.next()?)).file_name()?.to_string_lossy().into_owned();
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
    Some(std::iter::once(program).chain(words).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_of_a_sandbox_is_recognized() {
        let parsed = |numbers: &str| {
            Status::parse(&format!("Name:\tcat\nPPid:\t7\nNSpid:\t{numbers}\n")).map(|status| status.is_init)
        };
        assert_eq!(parsed("100\t5"), Some(false));
        assert_eq!(parsed("100\t1"), Some(true));
        // A process outside a sandbox.
        assert_eq!(parsed("100"), Some(true));
        assert_eq!(programs(std::process::id()), [] as [String; 0]);
    }

    #[test]
    fn a_command_line_begins_with_the_programs_name() {
        assert_eq!(command_of(b"/usr/bin/cat\0notes.txt\0"), Some("cat notes.txt".into()));
        assert_eq!(command_of(b""), None);
    }
}
