//! Reads the user's configuration (`config.json`, `mcp-servers.json` and the policy files) and the requirements of the
//! user's organization.
//!
//! - If a file is missing, its defaults apply. An error about an invalid file names the file and the position.
//! - Makes no decisions about calls. Returns the user's settings, and computes the protected paths and the policy
//!   snapshot from them.
//! - Contains the names of secrets, but never their values.
//!
//! ```no_run
//! use ironcurtain_config::Servers;
//! use ironcurtain_config::home::Home;
//!
//! let servers = Servers::load(&Home::from_env()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry_error;
mod export;
pub mod home;
mod managed;
mod policy_snapshot;
mod protection;
mod reading;
mod remote;
mod run_profiles;
mod sandbox;
#[cfg(test)]
mod schemas;
mod server;
mod servers;
mod snapshot_error;
mod stored;
mod stored_remote;

pub use entry_error::RemoteEntryError;
pub use export::{ExportConfig, ExportedPaths};
pub use managed::{
    BundleSettings, ExportPathsError, MANAGED_FILE, Managed, ManagedBundle, ManagedError, ManagedNetwork,
    ManagedPolicy, ManagedSettings, ServerPattern, UntrustedFileError, WithoutBundle, read_root_file,
};
pub use policy_snapshot::{Hosts, PolicyFiles, PolicySnapshot, PolicyTexts};
pub use protection::{Exposure, WritableBy, folders_to_watch, resolved_paths};
pub use remote::RemoteServer;
pub use run_profiles::{
    AddedArguments, FoundProgram, LearnedAccess, PlanContext, ProgramPattern, RunPlan, RunPlanError,
    RunProfile, RunProfileError, RunProfiles, SettingCondition, propose_profile,
};
pub use sandbox::{
    AutostartSettings, FileView, FilesystemSettings, GitConfigSettings, LimitSettings, NetworkSettings,
    PassEnv, Sandbox, SandboxSettings,
};
pub use server::{Sampling, Server, ServerAccess, ToolPinning};
pub use servers::Servers;
pub use snapshot_error::{ExposedFile, SnapshotError};

use crate::home::Home;
use ironcurtain_paths::bounded_read;
use ironcurtain_policy::{SourceLocation, strict};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Error from loading a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Reading the file failed.
    #[error("failed to read `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The contents of the file are invalid.
    #[error("{location}: {problem}")]
    Invalid {
        /// File and line of the problem.
        location: SourceLocation,
        /// Description of the problem.
        problem: String,
    },
    /// The organization's settings are invalid.
    #[error(transparent)]
    Managed(#[from] ManagedError),
}

impl ConfigError {
    /// Creates an error about this file, including the line if it is known.
    fn invalid(path: &Path, line: Option<usize>, problem: impl Into<String>) -> Self {
        let location = SourceLocation { file: path.display().to_string(), line };
        Self::Invalid { location, problem: problem.into() }
    }
}

/// Configuration of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Settings from `config.json`.
    pub config: Config,
    /// Servers from `mcp-servers.json`.
    pub servers: Servers,
}

/// `config.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Version of the format; 1.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub schema_version: u32,
    /// Time until an unanswered question is denied, in seconds. Clients time out calls after 60 s.
    #[cfg_attr(test, schemars(range(min = 1, max = 3600)))]
    pub question_deadline_seconds: u64,
    /// Maximum number of questions per session per minute. A client may ask four times as many in all its sessions.
    /// Further calls are denied.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000)))]
    pub questions_per_minute: usize,
    /// Duration for which a denied call is denied again without asking, in seconds. Each further denial doubles it; 0 always
    /// asks.
    #[cfg_attr(test, schemars(range(min = 0, max = 3600)))]
    pub denial_holds_seconds: u64,
    /// Maximum number of open sessions.
    #[cfg_attr(test, schemars(range(min = 1, max = 100_000)))]
    pub max_sessions: usize,
    /// Maximum memory for in-flight messages of all sessions, in MiB. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(min = 64, max = 65_536)))]
    pub memory_mib: u32,
    /// Maximum memory for in-flight messages per session and direction, in MiB. Longer messages are refused.
    #[cfg_attr(test, schemars(range(min = 1, max = 64)))]
    pub session_memory_mib: u32,
    /// Treatment of servers that require a sandbox on a machine that cannot create one.
    pub sandbox_policy: SandboxPolicy,
    /// Program that creates the sandboxes.
    pub sandbox_backend: SandboxBackend,
    /// Size at which the audit log starts a new file, in MiB. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(min = 1, max = 4096)))]
    pub record_file_mib: u64,
    /// Number of days for which audit entries are kept. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(min = 1, max = 36500)))]
    pub record_keep_days: u64,
    /// Named sets of servers; an agent client selects one with `--profile NAME`. Each is a list of server names from
    /// `mcp-servers.json`.
    pub profiles: BTreeMap<String, BTreeSet<String>>,
    /// Collector to which the audit log is exported. Absent: no export.
    pub export: Option<ExportConfig>,
}

/// Treatment of servers that require a sandbox on a machine that cannot create one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxPolicy {
    /// Refuses to start the server.
    #[default]
    Enforce,
    /// Starts the server unsandboxed and shows a warning.
    Warn,
}

/// Program that creates the sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxBackend {
    /// `ironcurtain-sandbox`.
    #[default]
    Native,
    /// `srt`, from the npm package `@anthropic-ai/sandbox-runtime`. Supports no live grants.
    Srt,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema_version: 1,
            question_deadline_seconds: 45,
            questions_per_minute: 5,
            denial_holds_seconds: 60,
            max_sessions: 1000,
            memory_mib: 512,
            session_memory_mib: 64,
            sandbox_policy: SandboxPolicy::default(),
            sandbox_backend: SandboxBackend::default(),
            record_file_mib: 64,
            record_keep_days: 365,
            profiles: BTreeMap::new(),
            export: None,
        }
    }
}

impl Config {
    /// Reads and parses `config.json`.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the file cannot be read or is invalid.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        Ok(Self::from_text(&Self::read_text(home)?)?.restricted(Managed::load()?.as_ref()))
    }

    /// Parses the text of `config.json`. Errors name `file`.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the text is invalid.
    pub fn read_from(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::from_text(&ConfigText { path: file.to_path_buf(), content: Some(text.to_owned()) })
    }

    /// Reads `config.json` without parsing it.
    ///
    /// # Errors
    /// Returns [`ConfigError::Io`] if the file exists but cannot be read.
    pub fn read_text(home: &Home) -> Result<ConfigText, ConfigError> {
        ConfigText::read(home.config.join("config.json"))
    }

    /// Parses the text of `config.json`.
    pub fn from_text(text: &ConfigText) -> Result<Self, ConfigError> {
        let Some(content) = text.content.as_deref() else { return Ok(Self::default()) };
        let config: Self = strict::read(content)
            .map_err(|misread| ConfigError::invalid(&text.path, misread.line, misread.to_string()))?;
        let invalid = |field: &str, problem: String| {
            let line = strict::line_of(content, &[field]);
            Err(ConfigError::invalid(&text.path, line, format!("`{field}` {problem}")))
        };
        if config.schema_version != 1 {
            return invalid(
                "schemaVersion",
                format!("is {}, which is not supported; expected 1", config.schema_version),
            );
        }
        let (sessions, memory) = (config.max_sessions as u64, u64::from(config.memory_mib));
        for (field, value, range) in [
            ("questionDeadlineSeconds", config.question_deadline_seconds, 1..=3600),
            ("questionsPerMinute", config.questions_per_minute as u64, 1..=1000),
            ("denialHoldsSeconds", config.denial_holds_seconds, 0..=3600),
            ("maxSessions", sessions, 1..=100_000),
            ("memoryMib", memory, 64..=65_536),
            ("sessionMemoryMib", u64::from(config.session_memory_mib), 1..=64),
            ("recordFileMib", config.record_file_mib, 1..=4096),
            ("recordKeepDays", config.record_keep_days, 1..=36_500),
        ] {
            if !range.contains(&value) {
                let (least, most) = range.into_inner();
                return invalid(field, format!("is {value}; it must be from {least} to {most}"));
            }
        }
        if let Some((name, _)) = config.profiles.iter().find(|(_, servers)| servers.is_empty()) {
            return invalid("profiles", format!("has no server in `{name}`; add the names of some"));
        }
        if let Some(export) = &config.export
            && let Err(problem) = export.check()
        {
            return invalid("export", format!("is invalid: {problem}"));
        }
        Ok(config)
    }

    /// Returns the settings with the restrictions of the user's organization applied.
    #[must_use]
    pub fn restricted(mut self, managed: Option<&Managed>) -> Self {
        if let Some(managed) = managed {
            managed.settings.restrict_config(&mut self);
        }
        self
    }

    /// Returns the time for which a question stays open.
    #[must_use]
    pub fn question_deadline(&self) -> Duration {
        Duration::from_secs(self.question_deadline_seconds)
    }
}

/// Reads a file. Returns `None` if it does not exist.
///
/// # Errors
/// Returns [`ConfigError::Io`] if the file exists but cannot be read.
pub fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    bounded_read::read_text(path).map_err(|source| ConfigError::Io { path: path.to_path_buf(), source })
}

/// A file's path, and its contents at the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigText {
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of the file, or `None` if the file did not exist.
    pub content: Option<String>,
}

impl ConfigText {
    /// Reads a file. A missing file is not an error.
    ///
    /// # Errors
    /// Returns [`ConfigError::Io`] if the file exists but cannot be read.
    pub fn read(path: PathBuf) -> Result<Self, ConfigError> {
        let content = read(&path)?;
        Ok(Self { path, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/home/u"));
        home.prepare().unwrap();
        std::fs::write(home.config.join("config.json"), text).unwrap();
        Config::load(&home).map_err(|e| e.to_string().replace(&*dir.path().to_string_lossy(), ""))
    }

    #[test]
    fn unknown_keys_and_invalid_values_are_named() {
        assert_eq!(loaded("{}"), Ok(Config::default()));
        assert_eq!(
            loaded(r#"{"questionDeadlineSeconds":5}"#).unwrap().question_deadline(),
            Duration::from_secs(5)
        );
        let unknown = loaded(r#"{"deadline":5}"#).unwrap_err();
        assert!(
            unknown.starts_with("`/config/config.json`, line 1: `deadline`: unknown field `deadline`"),
            "{unknown}"
        );
        let zero = "`/config/config.json`, line 1: `questionDeadlineSeconds` is 0; it must be from 1 to 3600";
        assert_eq!(loaded(r#"{"questionDeadlineSeconds":0}"#), Err(zero.into()));
        let none = "`/config/config.json`, line 1: `recordKeepDays` is 0; it must be from 1 to 36500";
        assert_eq!(loaded(r#"{"recordKeepDays":0}"#), Err(none.into()));
        assert!(loaded(r#"{"recordFileMib":4097}"#).unwrap_err().contains("it must be from 1 to 4096"));
        assert_eq!(loaded(r#"{"recordFileMib":1}"#).unwrap().record_file_mib, 1);
        assert!(loaded(r#"{"schemaVersion":2}"#).is_err());
        let profiles = loaded(r#"{"profiles":{"work":["git","memory"]}}"#).unwrap().profiles;
        assert!(profiles["work"].iter().eq(["git", "memory"]));
        let empty = loaded(r#"{"profiles":{"none":[]}}"#).unwrap_err();
        assert!(empty.ends_with("`profiles` has no server in `none`; add the names of some"), "{empty}");
        let chosen = loaded(r#"{"sandboxPolicy":"warn","sandboxBackend":"srt"}"#).unwrap();
        assert_eq!(
            (chosen.sandbox_policy, chosen.sandbox_backend),
            (SandboxPolicy::Warn, SandboxBackend::Srt)
        );
        let unknown = loaded(r#"{"sandboxPolicy":"off"}"#).unwrap_err();
        assert!(unknown.contains("unknown variant `off`, expected `enforce` or `warn`"), "{unknown}");
        let twice = loaded("{\"sandboxPolicy\":\"enforce\",\n\"sandboxPolicy\":\"warn\"}").unwrap_err();
        assert_eq!(twice, "`/config/config.json`, line 2: `sandboxPolicy` comes twice (column 15)");
        let list = loaded("[1, 45]").unwrap_err();
        assert_eq!(list, "`/config/config.json`, line 1: invalid type: list, expected an object");
    }
}
