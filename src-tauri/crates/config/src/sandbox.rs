//! The `sandbox` entry of a server: its differences from the defaults.
//!
//! - Plain data; the trusted process derives the effective sandbox for this machine and session.
//! - Any unknown key is an error that names it, so that a typo never weakens a sandbox.

use super::reading::{NamesOrAll, false_or};
use serde::{Deserialize, Deserializer, Serialize};

/// Containment of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Runs with all the user's rights, by explicit choice: `"sandbox": false`.
    OptedOut,
    /// Runs in a sandbox; without an entry, with the defaults.
    Sandboxed(Box<SandboxSettings>),
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::Sandboxed(Box::default())
    }
}

/// The contents of a `sandbox` object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// The part of the file system that there is to see. When absent, `roots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<FileView>,
    /// Which files it reaches.
    pub filesystem: FilesystemSettings,
    /// Which hosts it reaches: `false` or absent for none.
    #[cfg_attr(test, schemars(with = "super::schemas::FalseOr<NetworkSettings>"))]
    #[serde(deserialize_with = "false_or", skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSettings>,
    /// It may use unix sockets, as browsers do among their own processes. Those of the machine stay out of its sight.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unix_sockets: bool,
    /// Which files that other programs of the person's run later it may leave behind.
    pub autostart: AutostartSettings,
    /// Its rights to the `config` of git repositories that it may write to. When absent, `guarded` for servers whose
    /// annotated tools change repositories, else `closed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_config: Option<GitConfigSettings>,
    /// The limits of its resources.
    pub limits: LimitSettings,
}

/// Which files that run later may stay where a server left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Autostart"))]
#[serde(rename_all = "kebab-case")]
pub enum AutostartSettings {
    /// Those that nothing runs unasked stay and are listed for the person; the others are moved to quarantine.
    #[default]
    Listed,
    /// None: each is moved to quarantine.
    Strict,
}

/// The rights of a server to the `config` of a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "GitConfig"))]
#[serde(rename_all = "kebab-case")]
pub enum GitConfigSettings {
    /// Read it.
    Closed,
    /// Write it; a key that has git run something is put back to what it was.
    Guarded,
}

/// The part of the file system that a server sees before any grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileView {
    /// The machine's files, read-only, without those that are denied.
    HostRead,
    /// Almost nothing: system programs, its own program, the session's directory and what is granted.
    Roots,
}

/// Which files a server reaches beyond its view. `~` is the person's home.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FilesystemSettings {
    /// Folders it may write to besides the session's own; a relative path is below the session's own.
    pub allow_write: Vec<String>,
    /// Paths it may read in any view, such as its own program: absolute, or below `~`.
    pub allow_read: Vec<String>,
    /// Paths it may not read, besides those that no server reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_read: Option<Vec<String>>,
    /// Paths it may not write to, even inside of `allowWrite`.
    pub deny_write: Vec<String>,
    /// Files it may write although other programs of the person's run what is in them: `.git` for a git server.
    pub allow_persistence: Vec<String>,
}

/// Which hosts a server reaches: denied first, then allowed, and no other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkSettings {
    /// Hosts it may reach: a name, or `*.name` for all below it, each with `:port` where it is not 80 or 443. A host of
    /// this machine or its network is reached only where its address is written out, too.
    pub allowed_domains: Vec<String>,
    /// Hosts it may not reach even if they are allowed or granted; `*` for any.
    #[serde(default)]
    pub denied_domains: Vec<String>,
    /// The person is asked about any other host.
    #[serde(default)]
    pub ask_unknown: bool,
}

impl NetworkSettings {
    /// Returns whether it allows no host, and the user is not asked about any.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.allowed_domains.is_empty() && !self.ask_unknown
    }
}

/// The limits of a server's resources; what is absent has the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Memory, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Processor time, in percent of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Processes and threads together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Open descriptors of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Largest file it may write, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_mib: Option<u64>,
    /// Size of its private `/tmp`, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_size_mib: Option<u64>,
}

/// Variables of IronCurtain's environment that a server gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassEnv {
    /// These, if set.
    Named(Vec<String>),
    /// All of them.
    All,
}

impl Default for PassEnv {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Sandbox {
    /// Returns its settings, or `None` if it opted out.
    #[must_use]
    pub fn settings(&self) -> Option<&SandboxSettings> {
        match self {
            Self::OptedOut => None,
            Self::Sandboxed(settings) => Some(settings),
        }
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let settings: Option<SandboxSettings> = false_or(from)?;
        Ok(settings.map_or(Self::OptedOut, |settings| Self::Sandboxed(Box::new(settings))))
    }
}

impl<'de> Deserialize<'de> for PassEnv {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match NamesOrAll::deserialize(from)? {
            NamesOrAll::All => Self::All,
            NamesOrAll::Names(names) => Self::Named(names),
        })
    }
}
