//! Inspects a repository's configuration with git itself and restores keys that make git run programs.
//!
//! - Git reads only the configuration text that is passed to it, never the repository. Git runs no program, and its
//!   working directory is `/`.
//! - INVARIANT: a configuration that git cannot parse or check is not considered harmless.

mod keys;
mod plain;
mod targets;
mod user;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::Path,
    process::{ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use ironcurtain_paths::SYSTEM_PATH;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat},
    io::Errno,
};

use super::name_text::to_os_str;

pub(super) use keys::{ConfigPaths, resolve};
pub(super) use targets::{GitTarget, TargetFinder};
pub(super) use user::UserConfig;

/// Maximum size of a configuration in bytes. Real configurations are far smaller.
pub(super) const MAX_LEN: usize = 1 << 20;
/// Maximum size in bytes of git's output for one configuration.
const MAX_OUTPUT: usize = 4 << 20;
/// Timeout for git.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of keys restored individually. If more keys have changed, the whole configuration is restored.
const MAX_KEYS: usize = 16;

/// All values of each key, in file order.
type ConfigValues = BTreeMap<String, Vec<String>>;

/// Repair required for a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConfigRepair {
    /// No repair.
    NotNeeded,
    /// Restore only these keys. `text` is the resulting configuration.
    Keys { text: Vec<u8>, keys: Vec<String> },
    /// Restore the whole configuration. `keys` lists the changed keys, if they are known.
    All { keys: Vec<String> },
}

/// Compares a configuration with its previous text, if any, and returns the required repair. `scratch` is the path of
/// a temporary file.
pub(super) fn repair(
    before: Option<&[u8]>,
    now: &[u8],
    paths: &ConfigPaths<'_>,
    scratch: &Path,
) -> ConfigRepair {
    if before == Some(now) || plain::is_harmless(now) {
        return ConfigRepair::NotNeeded;
    }
    let all = |keys| ConfigRepair::All { keys };
    let (Some(old), Some(new)) = (parse_config(before.unwrap_or_default()), parse_config(now)) else {
        return all(vec![]);
    };
    let keys = changed_program_keys(&old, &new, paths);
    if keys.is_empty() {
        return ConfigRepair::NotNeeded;
    }
    if keys.len() > MAX_KEYS {
        return all(keys.into_iter().take(MAX_KEYS).collect());
    }
    match reset_keys(now, &old, &keys, scratch) {
        // Verifies the result with git itself.
        Ok(text)
            if parse_config(&text).is_some_and(|new| changed_program_keys(&old, &new, paths).is_empty()) =>
        {
            ConfigRepair::Keys { text, keys }
        }
        Ok(_) | Err(_) => all(keys),
    }
}

/// Returns the changed keys whose new value makes git run a program.
fn changed_program_keys(old: &ConfigValues, new: &ConfigValues, paths: &ConfigPaths<'_>) -> Vec<String> {
    let may_run =
        |key: &str, values: &[String]| values.iter().any(|value| keys::may_run_program(key, value, paths));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let value =
        |values_by_key: &ConfigValues, key: &String| values_by_key.get(key).cloned().unwrap_or_default();
    let is_changed = |key: &&String| {
        let (old, new) = (value(old, key), value(new, key));
        // A removed key runs no program.
        old != new && may_run(key, &new)
    };
    keys.into_iter().filter(is_changed).cloned().collect()
}

/// Returns the text `now` with the given keys reset to their old values.
fn reset_keys(now: &[u8], old: &ConfigValues, keys: &[String], scratch: &Path) -> io::Result<Vec<u8>> {
    fs::write(scratch, now)?;
    let file = scratch.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let edit = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["config", "--file", file].iter().chain(arguments).copied().collect();
        run(&arguments, &[]).map(drop).ok_or_else(|| io::Error::other("git failed to edit the configuration"))
    };
    let edited = keys.iter().try_for_each(|key| {
        edit(&["--unset-all", key])?;
        let values = old.get(key).map(Vec::as_slice).unwrap_or_default();
        values.iter().try_for_each(|value| edit(&["--add", key, value]))
    });
    let text = edited.and_then(|()| fs::read(scratch));
    let _ = fs::remove_file(scratch);
    text
}

/// Parses a configuration with git. Returns `None` if git rejects it.
fn parse_config(text: &[u8]) -> Option<ConfigValues> {
    if text.len() > MAX_LEN {
        return None;
    }
    if text.is_empty() {
        return Some(ConfigValues::new());
    }
    let output = run(&["config", "--file", "-", "--no-includes", "--null", "--list"], text)?;
    let output = String::from_utf8(output).ok()?;
    let mut settings = ConfigValues::new();
    for entry in output.split_terminator('\0') {
        // A key without a value means `true`.
        let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        settings.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    Some(settings)
}

/// Reads a configuration. Returns `None` if it is not a regular file or is too long.
pub(super) fn read_config(path: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, &*to_os_str(path), flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let mut text = Vec::new();
    file.take(MAX_LEN as u64 + 1)
        .read_to_end(&mut text)
        .ok()
        .filter(|read| metadata.is_file() && *read <= MAX_LEN)?;
    Some(text)
}

/// Runs git on the input. Returns `None` on failure, timeout or excessive output.
fn run(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut run = GitCommand::new(arguments);
    run.git.env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    run.output(input).ok()
}

/// Git process to run outside any repository.
struct GitCommand {
    git: Command,
}

/// Reason git produced no usable output.
enum GitFailure {
    /// Git is not installed or has failed.
    Failed,
    /// Git timed out or its output was too long.
    NoResult,
}

impl GitCommand {
    fn new(arguments: &[&str]) -> Self {
        let mut git = Command::new("git");
        git.args(arguments).env_clear().env("PATH", SYSTEM_PATH).env("LC_ALL", "C");
        git.env("GIT_CEILING_DIRECTORIES", "/").env("GIT_DIR", "/dev/null").current_dir("/");
        Self { git }
    }

    /// Sets an environment variable for git.
    fn variable(&mut self, name: &str, value: &str) {
        self.git.env(name, value);
    }

    /// Passes on an environment variable of this process.
    fn inherit(&mut self, name: &str) {
        if let Some(value) = std::env::var_os(name) {
            self.git.env(name, value);
        }
    }

    /// Runs git and returns its output. Creates no threads, because a supervisor must stay single-threaded.
    fn output(mut self, input: &[u8]) -> Result<Vec<u8>, GitFailure> {
        let stdin = || -> io::Result<File> {
            let mut stdin = File::from(memfd_create(c"ironcurtain-git", MemfdFlags::CLOEXEC)?);
            stdin.write_all(input)?;
            stdin.rewind().map(|()| stdin)
        };
        let stdin = stdin().map_err(|_| GitFailure::NoResult)?;
        self.git.stdin(Stdio::from(stdin)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = self.git.spawn().map_err(|_| GitFailure::Failed)?;
        let output = child.stdout.take().and_then(read_with_timeout);
        if output.is_none() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|_| GitFailure::NoResult)?;
        let output = output.ok_or(GitFailure::NoResult)?;
        if status.success() { Ok(output) } else { Err(GitFailure::Failed) }
    }
}

/// Reads until EOF. Returns `None` on error, timeout or excessive output.
fn read_with_timeout(mut from: ChildStdout) -> Option<Vec<u8>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut output = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()?;
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&left)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        let count = from.read(&mut chunk).ok()?;
        output.extend_from_slice(chunk.get(..count)?);
        if count == 0 {
            return Some(output);
        }
        if output.len() > MAX_OUTPUT {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair_for(before: Option<&str>, now: &str) -> ConfigRepair {
        let dir = tempfile::tempdir().unwrap();
        let paths = ConfigPaths { is_checked: &|path| path.starts_with("/root/"), folder: "/root/repo/.git" };
        repair(before.map(str::as_bytes), now.as_bytes(), &paths, &dir.path().join("scratch"))
    }

    fn keys(before: Option<&str>, now: &str) -> Vec<String> {
        match repair_for(before, now) {
            ConfigRepair::NotNeeded => vec![],
            ConfigRepair::Keys { keys, .. } | ConfigRepair::All { keys } => keys,
        }
    }

    #[test]
    fn repair_restores_only_keys_that_run_programs() {
        let before = "[core]\n\tpager = less\n\tbare = false\n";
        let now = "[core]\n\tpager = evil\n\tbare = false\n\tfsmonitor = evil\n[user]\n\tname = Me\n";
        let ConfigRepair::Keys { text, keys } = repair_for(Some(before), now) else { panic!() };
        assert_eq!(keys, ["core.fsmonitor", "core.pager"]);
        let settings = parse_config(&text).unwrap();
        let values: Vec<(&str, &str)> =
            settings.iter().map(|(key, values)| (key.as_str(), values[0].as_str())).collect();
        assert_eq!(values, [("core.bare", "false"), ("core.pager", "less"), ("user.name", "Me")]);
    }

    #[test]
    fn repair_understands_gits_syntax() {
        for text in [
            "[core] FsMonitor=evil",
            "[CORE]\nfsmonitor = ev\\\nil",
            "[core] ; x\n fsmonitor = \"evil\" ; y",
            "[include]\npath = ../x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[remote \"a\"]\nurl = ext::sh -c evil",
            "[remote \"a\"]\nuploadpack = evil",
            "[url \"ext::sh\"]\ninsteadOf = https://",
            "[alias]\nst = !evil",
            "[filter \"x\"]\nclean = evil",
            "[branch \"m\"]\nremote = ext::sh -c evil",
            "[submodule \"a\"]\nupdate = !evil",
            "[core]\nworktree = /elsewhere",
            "[credential \"https://x\"]\nhelper = evil",
        ] {
            assert_eq!(keys(None, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn ordinary_configurations_need_no_repair() {
        for text in [
            "[core]\nbare = false\n[remote \"o\"]\nurl = git@x.org:a.git\nfetch = +refs/heads/*:refs/remotes/o/*",
            "[remote \"o\"]\nurl = \"https://x.org/a\\\\b.git\"",
            "[submodule \"a\"]\nactive = true\nurl = https://x.org/a.git",
            "[core]\nworktree = ../sub",
            "[alias]\nco = checkout\nlg = log --oneline --graph",
            "[core]\nfsmonitor = false\n[color]\npager = true",
            "[pull]\nrebase = true\n[push]\ndefault = current\n[merge]\nconflictStyle = diff3",
        ] {
            assert_eq!(repair_for(None, text), ConfigRepair::NotNeeded, "{text}");
        }
    }

    #[test]
    fn existing_keys_stay_and_invalid_configurations_are_replaced() {
        let before = "[core]\nhooksPath = .githooks\n";
        let now = format!("{before}[user]\nname = Me\n[x]\ny = z\n");
        assert_eq!(repair_for(Some(before), &now), ConfigRepair::NotNeeded);
        assert_eq!(repair_for(Some(before), "[core"), ConfigRepair::All { keys: vec![] });
        let many: String = (0..20).map(|n| format!("[filter \"{n}\"]\nclean = x\n")).collect();
        assert!(matches!(repair_for(None, &many), ConfigRepair::All { keys } if keys.len() == MAX_KEYS));
    }
}
