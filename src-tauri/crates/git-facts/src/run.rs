//! Running git so that it can do nothing but spell out configuration.
//!
//! - It runs in `/`, with an environment made here, no terminal and no input but what is given to it.
//! - It is killed when it takes too long, has a bound on memory, and can write no file.

use super::UnknownAddress;
use super::repository::Repository;
use super::settings::GitSettings;
use ironcurtain_paths::{CanonicalPath, SYSTEM_PATH};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The time that all runs for one call may take together.
const BOUND: Duration = Duration::from_secs(2);

/// The most bytes of output.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The most memory of a run.
#[cfg(target_os = "linux")]
const MOST_MEMORY: u64 = 512 * 1024 * 1024;

/// The user's variables that say where git's own configuration is.
const PASSED: [&str; 3] = ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];

/// Tells git to pass over the machine's configuration, but not where that is asked for by name. A server may have it or
/// not.
const NO_MACHINE: &str = "GIT_CONFIG_NOSYSTEM";

/// Variables that keep git to itself.
const SET: [(&str, &str); 6] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("LC_ALL", "C"),
];

/// All runs for one call.
pub(super) struct GitRunner {
    person: CanonicalPath,
    until: Instant,
}

impl GitRunner {
    pub(super) fn new(person: &CanonicalPath) -> Self {
        Self { person: person.clone(), until: Instant::now() + BOUND }
    }

    /// The settings of the machine, as they are for a repository.
    pub(super) fn of_machine(&self, place: Option<&Repository>) -> Result<GitSettings, UnknownAddress> {
        self.own(&["--system"], place)
    }

    /// The settings of the person, as they are for a repository. Asked for `--global`, git may leave out one of its two
    /// files.
    pub(super) fn of_person(&self, place: Option<&Repository>) -> Result<GitSettings, UnknownAddress> {
        if std::env::var_os("GIT_CONFIG_GLOBAL").is_some() {
            return self.own(&["--global"], place);
        }
        let home = self.person.as_path();
        let base = std::env::var_os("XDG_CONFIG_HOME").filter(|base| !base.is_empty());
        let base = base.map_or_else(|| home.join(".config"), PathBuf::from);
        let mut settings = GitSettings::default();
        for file in [base.join("git/config"), home.join(".gitconfig")] {
            if let Some(name) = file.to_str()
                && file.symlink_metadata().is_ok()
            {
                settings.0.extend(self.own(&["--file", name], place)?.0);
            }
        }
        Ok(settings)
    }

    fn own(&self, which: &[&str], place: Option<&Repository>) -> Result<GitSettings, UnknownAddress> {
        let arguments = [&["config"], which, &["--includes", "--list", "-z"]].concat();
        // Without such a file it fails; with one that is not understood every git of the person's fails.
        let settings = self
            .run(&arguments, place, &[])?
            .map_or(Ok(GitSettings::default()), |out| GitSettings::parse(&out))?;
        // Asked for these files alone, git does not see the remotes of the repository.
        let by_remote = settings.0.iter().any(|(key, _)| key.starts_with("includeif.hasconfig:"));
        if by_remote { Err(UnknownAddress::ByRemote) } else { Ok(settings) }
    }

    /// The settings in a text, includes not followed.
    pub(super) fn spelled_out(&self, text: &[u8]) -> Result<GitSettings, UnknownAddress> {
        let arguments = ["config", "--file", "-", "--no-includes", "--list", "-z"];
        GitSettings::parse(&self.run(&arguments, None, text)?.ok_or(UnknownAddress::NotUnderstood)?)
    }

    /// The file that an include in `folder` leads to, by name: git follows no link on the way to a name.
    pub(super) fn included(&self, folder: &Path, written: &str) -> Result<PathBuf, UnknownAddress> {
        // What git gives a meaning of its own is not guessed.
        if written.starts_with("%(") || written.starts_with(":(") {
            return Err(UnknownAddress::Conditional);
        }
        match written.strip_prefix("~/") {
            Some(rest) => Ok(self.person.as_path().join(rest)),
            None if written.starts_with('~') => Err(UnknownAddress::NotPlain),
            None => Ok(folder.join(written)),
        }
    }

    /// The output; nothing when git says that it failed.
    fn run(
        &self,
        arguments: &[&str],
        place: Option<&Repository>,
        input: &[u8],
    ) -> Result<Option<Vec<u8>>, UnknownAddress> {
        let mut git = Command::new("git");
        git.arg("--no-pager").args(arguments).env_clear().envs(SET);
        git.env("PATH", search_path()).env("HOME", self.person.as_path());
        git.envs(PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        git.envs(place.map(|place| ("GIT_DIR", place.git_dir.as_path())));
        git.current_dir("/").process_group(0);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = git.spawn().map_err(|_| UnknownAddress::NotRun)?;
        limit(&child);
        let output = self.converse(&mut child, input);
        if output.is_err() {
            end(&child);
        }
        let status = child.wait().map_err(|_| UnknownAddress::NotRun)?;
        Ok(status.success().then_some(output?))
    }

    /// Gives it its input and takes its output, within the bounds.
    fn converse(&self, child: &mut Child, input: &[u8]) -> Result<Vec<u8>, UnknownAddress> {
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(UnknownAddress::NotRun);
        };
        let (send, receive) = mpsc::channel();
        std::thread::scope(|threads| {
            // One that ends before it has read everything says so by its status.
            threads.spawn(move || drop(stdin.write_all(input)));
            threads.spawn(move || {
                let mut output = Vec::new();
                let read = stdout.take(MOST_BYTES + 1).read_to_end(&mut output);
                // Who waits no longer has ended it.
                let _ = send.send(read.map(|_| output));
            });
            let left = self.until.saturating_duration_since(Instant::now());
            let heard = receive.recv_timeout(left);
            if heard.is_err() {
                // The threads end with it.
                end(child);
            }
            match heard {
                Err(_) => Err(UnknownAddress::Late),
                Ok(Err(_)) => Err(UnknownAddress::NotRun),
                Ok(Ok(output)) if output.len() as u64 > MOST_BYTES => Err(UnknownAddress::TooBig),
                Ok(Ok(output)) => Ok(output),
            }
        })
    }
}

/// Returns the directories in which git is searched for. Tests put a stand-in for git on their own `PATH`.
fn search_path() -> OsString {
    if cfg!(test) { std::env::var_os("PATH").unwrap_or_default() } else { SYSTEM_PATH.into() }
}

/// Returns `true` if git may pass over the machine's configuration.
pub(super) fn may_pass_over_machine() -> bool {
    std::env::var_os(NO_MACHINE).is_some()
}

/// Bounds what it may use; where that fails there is still the bound on time.
#[cfg(target_os = "linux")]
fn limit(child: &Child) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let most = |n| Rlimit { current: Some(n), maximum: Some(n) };
    let pid = pid(child);
    for (resource, bound) in [(Resource::As, MOST_MEMORY), (Resource::Fsize, 0), (Resource::Core, 0)] {
        let _ = prlimit(pid, resource, most(bound));
    }
}

/// Elsewhere no process can be bounded from outside.
#[cfg(not(target_os = "linux"))]
fn limit(_: &Child) {}

fn end(child: &Child) {
    if let Some(pid) = pid(child) {
        // One that has ended already needs no end.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}
