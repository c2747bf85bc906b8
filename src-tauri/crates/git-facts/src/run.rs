//! Runs git restricted to parsing configuration.
//!
//! - Git runs in `/`, without a terminal, with known environment variables only and with the given input.
//! - Git is killed after a timeout. Its memory is limited, and it cannot write files.

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

/// Total timeout for all git runs of a call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of git's output in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum size of git's address space in bytes.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 512 * 1024 * 1024;

/// Environment variables with which the user can select other configuration files.
const PASSED_VARIABLES: [&str; 3] = ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];

/// Environment variable that makes git ignore the machine's configuration unless it is requested explicitly. The
/// server's environment may or may not contain this variable.
const NO_SYSTEM_CONFIG: &str = "GIT_CONFIG_NOSYSTEM";

/// Variables that prevent git from prompting, locking, fetching and tracing.
const FIXED_VARIABLES: [(&str, &str); 6] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("LC_ALL", "C"),
];

/// Runs git for one call. All runs share a deadline.
pub(super) struct GitRunner {
    home: CanonicalPath,
    deadline: Instant,
}

impl GitRunner {
    pub(super) fn new(home: &CanonicalPath) -> Self {
        Self { home: home.clone(), deadline: Instant::now() + TIMEOUT }
    }

    /// Returns the machine's settings as they apply to a repository.
    pub(super) fn machine_settings(
        &self,
        repository: Option<&Repository>,
    ) -> Result<GitSettings, UnknownAddress> {
        self.list_config(&["--system"], repository)
    }

    /// Returns the user's settings as they apply to a repository. Both of the user's files are read, although
    /// `--global` might skip one of them.
    pub(super) fn user_settings(
        &self,
        repository: Option<&Repository>,
    ) -> Result<GitSettings, UnknownAddress> {
        if std::env::var_os("GIT_CONFIG_GLOBAL").is_some() {
            return self.list_config(&["--global"], repository);
        }
        let home = self.home.as_path();
        let base = std::env::var_os("XDG_CONFIG_HOME").filter(|base| !base.is_empty());
        let base = base.map_or_else(|| home.join(".config"), PathBuf::from);
        let mut settings = GitSettings::default();
        for file in [base.join("git/config"), home.join(".gitconfig")] {
            if let Some(name) = file.to_str()
                && file.symlink_metadata().is_ok()
            {
                settings.0.extend(self.list_config(&["--file", name], repository)?.0);
            }
        }
        Ok(settings)
    }

    fn list_config(
        &self,
        scope: &[&str],
        repository: Option<&Repository>,
    ) -> Result<GitSettings, UnknownAddress> {
        let arguments = [&["config"], scope, &["--includes", "--list", "-z"]].concat();
        // Git fails if a file does not exist. It also fails if a file is invalid, but then all of the user's git
        // commands fail.
        let settings = self
            .run(&arguments, repository, &[])?
            .map_or(Ok(GitSettings::default()), |out| GitSettings::parse(&out))?;
        // Git cannot know the repository's remotes from these files alone.
        let by_remote = settings.0.iter().any(|(key, _)| key.starts_with("includeif.hasconfig:"));
        if by_remote { Err(UnknownAddress::IncludesByRemote) } else { Ok(settings) }
    }

    /// Returns the settings in a configuration's text, without following includes.
    pub(super) fn parse_config(&self, text: &[u8]) -> Result<GitSettings, UnknownAddress> {
        let arguments = ["config", "--file", "-", "--no-includes", "--list", "-z"];
        GitSettings::parse(&self.run(&arguments, None, text)?.ok_or(UnknownAddress::Unparsable)?)
    }

    /// Returns an included file's path, relative to `folder`. Like git, does not resolve symlinks.
    pub(super) fn include_path(&self, folder: &Path, written: &str) -> Result<PathBuf, UnknownAddress> {
        // Prefixes with a special meaning in git are not supported.
        if written.starts_with("%(") || written.starts_with(":(") {
            return Err(UnknownAddress::ConditionalIncludes);
        }
        match written.strip_prefix("~/") {
            Some(rest) => Ok(self.home.as_path().join(rest)),
            None if written.starts_with('~') => Err(UnknownAddress::IrregularFile),
            None => Ok(folder.join(written)),
        }
    }

    /// Runs git and returns its output, or `None` if it exits with an error.
    fn run(
        &self,
        arguments: &[&str],
        repository: Option<&Repository>,
        input: &[u8],
    ) -> Result<Option<Vec<u8>>, UnknownAddress> {
        let mut git = Command::new("git");
        git.arg("--no-pager").args(arguments).env_clear().envs(FIXED_VARIABLES);
        git.env("PATH", search_path()).env("HOME", self.home.as_path());
        git.envs(PASSED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        git.envs(repository.map(|repository| ("GIT_DIR", repository.git_dir.as_path())));
        git.current_dir("/").process_group(0);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = git.spawn().map_err(|_| UnknownAddress::GitFailed)?;
        limit_resources(&child);
        let output = self.communicate(&mut child, input);
        if output.is_err() {
            kill(&child);
        }
        let status = child.wait().map_err(|_| UnknownAddress::GitFailed)?;
        Ok(status.success().then_some(output?))
    }

    /// Writes the input and reads the output within the limits.
    fn communicate(&self, child: &mut Child, input: &[u8]) -> Result<Vec<u8>, UnknownAddress> {
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(UnknownAddress::GitFailed);
        };
        let (send, receive) = mpsc::channel();
        std::thread::scope(|threads| {
            // An error means that git exited before reading everything. Its exit status shows this.
            threads.spawn(move || drop(stdin.write_all(input)));
            threads.spawn(move || {
                let mut output = Vec::new();
                let read = stdout.take(MAX_BYTES + 1).read_to_end(&mut output);
                // An error means that the receiver was dropped after a timeout.
                let _ = send.send(read.map(|_| output));
            });
            let remaining = self.deadline.saturating_duration_since(Instant::now());
            let received = receive.recv_timeout(remaining);
            if received.is_err() {
                // The threads finish when git exits.
                kill(child);
            }
            match received {
                Err(_) => Err(UnknownAddress::TimedOut),
                Ok(Err(_)) => Err(UnknownAddress::GitFailed),
                Ok(Ok(output)) if output.len() as u64 > MAX_BYTES => Err(UnknownAddress::TooLarge),
                Ok(Ok(output)) => Ok(output),
            }
        })
    }
}

/// Returns the `PATH` for git. Tests use the process's own `PATH`, which can contain a fake git.
fn search_path() -> OsString {
    if cfg!(test) { std::env::var_os("PATH").unwrap_or_default() } else { SYSTEM_PATH.into() }
}

/// Returns `true` if the environment may make git ignore the machine's configuration.
pub(super) fn may_ignore_machine_settings() -> bool {
    std::env::var_os(NO_SYSTEM_CONFIG).is_some()
}

/// Limits a process's resources. If this fails, only the timeout applies.
#[cfg(target_os = "linux")]
fn limit_resources(child: &Child) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let limit = |n| Rlimit { current: Some(n), maximum: Some(n) };
    let pid = pid(child);
    for (resource, bound) in [(Resource::As, MAX_MEMORY), (Resource::Fsize, 0), (Resource::Core, 0)] {
        let _ = prlimit(pid, resource, limit(bound));
    }
}

/// Does nothing, because other platforms cannot limit another process's resources.
#[cfg(not(target_os = "linux"))]
fn limit_resources(_: &Child) {}

fn kill(child: &Child) {
    if let Some(pid) = pid(child) {
        // An error is ignored, because the process may have exited.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}
