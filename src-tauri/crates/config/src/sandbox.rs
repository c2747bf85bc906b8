//! The `sandbox` object of a server's entry, which changes the default settings.
//!
//! - Plain data. The trusted process computes the effective sandbox from it for each machine and session.
//! - An unknown key is an error that names the key, so a typo cannot weaken a sandbox.

use super::reading::{NamesOrAll, false_or};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Containment that a server's entry requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// No sandbox: the server has all of the user's rights, because its entry contains `"sandbox": false`.
    OptedOut,
    /// A sandbox with these settings. An entry without `sandbox` uses the defaults.
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
    /// The part of the file system that the server sees. Default: `roots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<FileView>,
    /// Files that the server can access.
    pub filesystem: FilesystemSettings,
    /// Hosts that the server can reach: `false` or absent for none, `ask` to ask about each when the server connects to it.
    #[cfg_attr(test, schemars(with = "super::schemas::FalseOrAsk<NetworkSettings>"))]
    #[serde(deserialize_with = "hosts", skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSettings>,
    /// True to allow unix sockets, which browsers use between their own processes. Sockets of other programs stay
    /// invisible.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unix_sockets: bool,
    /// Autostart files that the server may leave behind: files that the user's other programs run later.
    pub autostart: AutostartSettings,
    /// Access to the `config` of git repositories that the server may write to. Default: `guarded` for servers whose
    /// annotated tools change repositories, otherwise `closed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_config: Option<GitConfigSettings>,
    /// Resource limits.
    pub limits: LimitSettings,
}

/// Autostart files that may stay where a server left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Autostart"))]
#[serde(rename_all = "kebab-case")]
pub enum AutostartSettings {
    /// Files that run only on the user's request stay and are listed for the user; others are moved to quarantine.
    #[default]
    Listed,
    /// None: every autostart file is moved to quarantine.
    Strict,
}

/// A server's access to the `config` of a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "GitConfig"))]
#[serde(rename_all = "kebab-case")]
pub enum GitConfigSettings {
    /// Read only.
    Closed,
    /// Read and write; a changed key that makes git run a program is restored.
    Guarded,
}

/// The part of the file system that a server sees before any grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileView {
    /// The machine's files, read-only, except denied ones.
    HostRead,
    /// System programs, the server's own program, the session's directory and granted paths only.
    Roots,
}

/// Files that a server can access beyond its view. `~` is the user's home directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FilesystemSettings {
    /// Writable folders, in addition to the session's own. Relative paths are below the session's folder.
    pub allow_write: Vec<String>,
    /// Paths that are readable in any view, such as the server's own program: absolute, or below `~`.
    pub allow_read: Vec<String>,
    /// Unreadable paths, in addition to the protected ones that no server can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_read: Option<Vec<String>>,
    /// Paths that are not writable, even inside `allowWrite`.
    pub deny_write: Vec<String>,
    /// Writable autostart files, which the user's other programs run: `.git` for a git server.
    pub allow_persistence: Vec<String>,
}

/// Hosts that a server can reach. Denied hosts take precedence; unlisted hosts are refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkSettings {
    /// Allowed hosts: a name, or `*.name` for all its subdomains, with `:port` for ports other than 80 and 443. A host on
    /// this machine or its network is reachable only if its IP address is listed too.
    pub allowed_domains: Vec<String>,
    /// Hosts that are refused even if allowed or granted; `*` for all.
    #[serde(default)]
    pub denied_domains: Vec<String>,
    /// True to ask the user about unlisted hosts.
    #[serde(default)]
    pub ask_unknown: bool,
}

impl NetworkSettings {
    /// Returns settings that ask the user about every host.
    #[must_use]
    pub fn asking() -> Self {
        Self { allowed_domains: Vec::new(), denied_domains: Vec::new(), ask_unknown: true }
    }

    /// Returns `true` if no host can be reached: no host is allowed, and the user is not asked.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.allowed_domains.is_empty() && !self.ask_unknown
    }
}

/// Deserializes network settings: `false` for none, `"ask"` to ask about every host, or an object.
fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NetworkSettings>, D::Error> {
    struct Reader;
    impl<'de> Visitor<'de> for Reader {
        type Value = Option<NetworkSettings>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`false`, `\"ask\"` or an object")
        }

        fn visit_bool<E: de::Error>(self, on: bool) -> Result<Self::Value, E> {
            if on { Err(E::invalid_value(Unexpected::Bool(true), &self)) } else { Ok(None) }
        }

        fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
            match word {
                "ask" => Ok(Some(NetworkSettings::asking())),
                other => Err(E::invalid_value(Unexpected::Str(other), &self)),
            }
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            NetworkSettings::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    from.deserialize_any(Reader)
}

/// Resource limits of a server. Absent limits have their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Memory, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// CPU time, as a percentage of one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Open file descriptors per process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Maximum size of a written file, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_mib: Option<u64>,
    /// Size of the private `/tmp`, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_size_mib: Option<u64>,
}

/// Variables from IronCurtain's environment that a server receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassEnv {
    /// The variables with these names, if they are set.
    Named(Vec<String>),
    /// All variables.
    All,
}

impl Default for PassEnv {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Sandbox {
    /// Returns the sandbox settings, or `None` if the server runs without a sandbox.
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
