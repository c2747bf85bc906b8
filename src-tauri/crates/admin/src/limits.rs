//! Shows and changes a server's resource limits.
//!
//! - The default applies to each limit that the entry does not set. Defaults cannot be turned off.
//! - Accepts only values that let a server start.
//! - Changes only the `limits` object of one entry.

use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_client_config::Edit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{LimitSettings, Sandbox, Server};
use ironcurtain_containment::limits as effective_limits;
use ironcurtain_sandbox::ResourceLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const MIB: u64 = 1 << 20;

/// Kind of resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Maximum memory, in MiB.
    Memory,
    /// Maximum CPU time, in percent of one CPU.
    Processor,
    /// Maximum number of processes and threads.
    Processes,
    /// Maximum number of open file descriptors per process.
    OpenFiles,
    /// Maximum size of a file that the server writes, in MiB.
    FileSize,
    /// Size of the server's private `/tmp`, in MiB.
    TmpSize,
}

/// A server's limit: the value that its entry sets, and the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimit {
    /// Kind of the limit.
    pub limit: Limit,
    /// Value in the server's entry, or `None` if the entry does not set it.
    pub own: Option<u64>,
    /// Default value, or `None` if there is no limit by default.
    pub default: Option<u64>,
}

/// Change to a limit, described for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitDifference {
    /// `true` if the new limit is higher.
    pub is_looser: bool,
    /// Description of the change.
    pub description: String,
}

/// Planned change to a server's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsChange {
    /// Name of the server.
    pub server: String,
    /// Changed limits, looser ones first.
    pub differences: Vec<LimitDifference>,
    /// Diff of the entry's sandbox object, in the format of `diff -u`, without a header. Contains no secrets.
    pub diff: String,
    servers: ServersFile,
    after: String,
}

/// Error from changing limits.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// The entry could not be changed.
    #[error(transparent)]
    Server(#[from] ServerChangeError),
    /// The value is out of range, so no server could start with it.
    #[error(
        "{} must be {} to {}, found {value}", .limit.name_in_sentence(), .limit.range().start(),
        .limit.format(Some(*.limit.range().end()))
    )]
    Range {
        /// Kind of the limit.
        limit: Limit,
        /// Invalid value.
        value: u64,
    },
    /// The server already has these limits.
    #[error("`{0}` already has these limits")]
    Same(String),
}

impl Limit {
    const ALL: [Self; 6] =
        [Self::Memory, Self::Processor, Self::Processes, Self::OpenFiles, Self::FileSize, Self::TmpSize];

    /// Returns the range of valid values.
    #[must_use]
    pub fn range(self) -> RangeInclusive<u64> {
        match self {
            Self::Memory => 32..=1_048_576,
            Self::Processor => 1..=100_000,
            Self::Processes => 8..=1_000_000,
            Self::OpenFiles => 32..=1_000_000,
            Self::FileSize | Self::TmpSize => 1..=1_048_576,
        }
    }

    /// Returns the limit's name for the user.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "Memory",
            Self::Processor => "CPU time",
            Self::Processes => "Processes and threads",
            Self::OpenFiles => "Open files of each process",
            Self::FileSize => "Largest file",
            Self::TmpSize => "Private /tmp",
        }
    }

    /// Returns the limit's name for the middle of a sentence, which is in lower case except for abbreviations.
    fn name_in_sentence(self) -> String {
        if self == Self::Processor { self.name().to_owned() } else { self.name().to_lowercase() }
    }

    /// Returns the unit of the values, or an empty string for a count.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory | Self::FileSize | Self::TmpSize => "MiB",
            Self::Processor => "% of one CPU",
            Self::Processes | Self::OpenFiles => "",
        }
    }

    /// Returns descriptions of how a looser and a tighter limit affect the server.
    fn effects(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory => ("it can take more memory from other programs", "it fails if it needs more"),
            Self::Processor => ("it can slow down other programs more", "it is slower if it needs more"),
            Self::Processes => ("it can start more at once", "it fails if it starts more"),
            Self::OpenFiles => ("it can keep more files open", "it fails if it opens more"),
            Self::FileSize => ("it can fill more of the disk with one file", "it cannot write a larger file"),
            Self::TmpSize => ("it can fill more memory with its own files", "it cannot store more there"),
        }
    }

    /// Formats a value with its unit.
    #[must_use]
    pub fn format(self, value: Option<u64>) -> String {
        let Some(value) = value else { return "no limit".to_owned() };
        format!("{value} {}", self.unit()).trim_end().to_owned()
    }

    /// Returns the value that the entry sets, and the value in effect.
    fn values(self, settings: &LimitSettings, limits: &ResourceLimits) -> (Option<u64>, Option<u64>) {
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes / MIB);
        match self {
            Self::Memory => (settings.memory_mib, mib(limits.memory)),
            Self::Processor => (settings.cpu_percent.map(u64::from), limits.cpu.map(u64::from)),
            Self::Processes => (settings.processes, limits.processes),
            Self::OpenFiles => (settings.open_files, limits.open_files),
            Self::FileSize => (settings.file_size_mib, mib(limits.file_size)),
            Self::TmpSize => (settings.tmp_size_mib, mib(limits.tmp_size)),
        }
    }

    fn set(self, settings: &mut LimitSettings, value: Option<u64>) {
        match self {
            Self::Memory => settings.memory_mib = value,
            Self::Processor => settings.cpu_percent = value.and_then(|value| u32::try_from(value).ok()),
            Self::Processes => settings.processes = value,
            Self::OpenFiles => settings.open_files = value,
            Self::FileSize => settings.file_size_mib = value,
            Self::TmpSize => settings.tmp_size_mib = value,
        }
    }
}

/// Returns a server's limits, or an empty list if the server does not run in a sandbox on this computer.
#[must_use]
pub fn limits(server: &Server) -> Vec<ServerLimit> {
    let Some(settings) = server.sandbox.settings().filter(|_| server.remote.is_none()) else {
        return Vec::new();
    };
    let default = effective_limits(&LimitSettings::default());
    let limit = |limit: Limit| {
        let (own, default) = limit.values(&settings.limits, &default);
        ServerLimit { limit, own, default }
    };
    Limit::ALL.into_iter().map(limit).collect()
}

impl LimitsChange {
    /// Plans a change to a server's limits. A value of `None` restores the default.
    ///
    /// # Errors
    /// Returns a [`LimitsError`] if a value is out of range, nothing changes or the servers file is invalid.
    pub fn plan(
        home: &Home,
        server: &str,
        wanted: &BTreeMap<Limit, Option<u64>>,
    ) -> Result<Self, LimitsError> {
        let servers = ServersFile::open(home)?;
        let found = servers.server(server)?;
        if found.remote.is_some() {
            return Err(ServerChangeError::Remote(found.name).into());
        }
        let Sandbox::Sandboxed(settings) = found.sandbox else {
            return Err(ServerChangeError::NotSandboxed(found.name).into());
        };
        let before = settings.limits;
        let mut after = before.clone();
        for (limit, value) in wanted {
            if let Some(value) = value.filter(|value| !limit.range().contains(value)) {
                return Err(LimitsError::Range { limit: *limit, value });
            }
            limit.set(&mut after, *value);
        }
        if after == before {
            return Err(LimitsError::Same(found.name));
        }
        let (keys, entry) = servers.entry(server)?;
        let path: Vec<&str> = keys.iter().map(String::as_str).chain(["sandbox", "limits"]).collect();
        let text = if after == LimitSettings::default() {
            servers.without(&path)?
        } else {
            servers.with(&path, &json!(after))?
        };
        let differences = differences(&before, &after);
        let diff = diff_of_sandbox(entry.get("sandbox"), &after);
        Ok(Self { server: server.to_owned(), differences, diff, servers, after: text })
    }

    /// Writes the change.
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] on failure, in which case the servers are unchanged.
    pub fn write(&self) -> Result<(), ServerChangeError> {
        self.servers.write(&self.after)
    }
}

/// Returns the limits whose effective values differ, looser ones first.
fn differences(before: &LimitSettings, after: &LimitSettings) -> Vec<LimitDifference> {
    let (was, is) = (effective_limits(before), effective_limits(after));
    let difference = |limit: Limit| {
        let ((_, was), (_, is)) = (limit.values(before, &was), limit.values(after, &is));
        let is_looser = match (was, is) {
            (Some(was), Some(is)) => is > was,
            (was, _) => was.is_some(),
        };
        let (looser, tighter) = limit.effects();
        let (word, effect) = if is_looser { ("Looser", looser) } else { ("Tighter", tighter) };
        let (name, old, new) = (limit.name(), limit.format(was), limit.format(is));
        let description = format!("{name}: {new} instead of {old}. {word}: {effect}.");
        (was != is).then_some(LimitDifference { is_looser, description })
    };
    let mut all: Vec<_> = Limit::ALL.into_iter().filter_map(difference).collect();
    all.sort_by_key(|one| !one.is_looser);
    all
}

fn diff_of_sandbox(sandbox: Option<&Value>, after: &LimitSettings) -> String {
    let before = sandbox.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut then = before.clone();
    if *after == LimitSettings::default() {
        then.remove("limits");
    } else {
        then.insert("limits".to_owned(), json!(after));
    }
    let text = |sandbox: Map<String, Value>| Some(format!("{:#}\n", json!({ "sandbox": sandbox })));
    Edit { before: text(before), after: text(then) }.diff()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::Servers;
    use std::fs;

    const TEXT: &str = r#"{
  "_comment": "mine",
  "mcpServers": { "a": { "command": "a", "sandbox": { "network": false, "limits": { "processes": 64 } } } },
  "b" : { "command":"b" },
  "open": { "command": "o", "sandbox": false },
  "far": { "url": "https://far.example/mcp" }
}
"#;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT).unwrap();
        (dir, home)
    }

    fn own(home: &Home, name: &str) -> Vec<(Limit, u64)> {
        let all = limits(Servers::load(home).unwrap().find(Some(name)).unwrap());
        all.into_iter().filter_map(|one| Some((one.limit, one.own?))).collect()
    }

    fn planned(home: &Home, server: &str, wanted: &[(Limit, Option<u64>)]) -> Result<LimitsChange, String> {
        let wanted = wanted.iter().copied().collect();
        LimitsChange::plan(home, server, &wanted).map_err(|problem| problem.to_string())
    }

    #[test]
    fn changes_are_described_and_written_in_place() {
        let (_dir, home) = home();
        let wanted = [
            (Limit::Memory, Some(512)),
            (Limit::Processor, Some(50)),
            (Limit::Processes, None),
            (Limit::OpenFiles, Some(9000)),
        ];
        let change = planned(&home, "a", &wanted).unwrap();
        let words: Vec<_> =
            change.differences.iter().map(|one| (one.is_looser, one.description.as_str())).collect();
        let expected = [
            (true, "Processes and threads: 1024 instead of 64. Looser: it can start more at once."),
            (true, "Open files of each process: 9000 instead of 4096. Looser: it can keep more files open."),
            (false, "Memory: 512 MiB instead of 4096 MiB. Tighter: it fails if it needs more."),
            (false, "CPU time: 50 % of one CPU instead of no limit. Tighter: it is slower if it needs more."),
        ];
        assert_eq!(words, expected);
        assert!(change.diff.contains("\n+      \"memoryMib\": 512"), "{}", change.diff);
        assert_eq!(own(&home, "a"), [(Limit::Processes, 64)], "nothing is written yet");
        change.write().unwrap();
        assert_eq!(own(&home, "a"), [(Limit::Memory, 512), (Limit::Processor, 50), (Limit::OpenFiles, 9000)]);
        let defaults = Limit::ALL.map(|limit| (limit, None));
        let back = planned(&home, "a", &defaults).unwrap();
        assert!(back.differences[0].description.starts_with("Memory: 4096 MiB instead of 512 MiB. Looser:"));
        assert!(back.differences[1].description.starts_with("CPU time: no limit instead of 50 %"));
        back.write().unwrap();
        let text = fs::read_to_string(home.config.join("mcp-servers.json")).unwrap();
        assert!(!text.contains("limits") && text.contains("\"network\": false"), "{text}");
        planned(&home, "b", &[(Limit::TmpSize, Some(64))]).unwrap().write().unwrap();
        assert_eq!(own(&home, "b"), [(Limit::TmpSize, 64)]);
    }

    #[test]
    fn invalid_limits_are_rejected_and_nothing_is_written() {
        let (_dir, home) = home();
        for (server, limit, value, expected) in [
            ("b", Limit::Memory, Some(0), "memory must be 32 to 1048576 MiB, found 0"),
            ("b", Limit::Processes, Some(7), "processes and threads must be 8 to 1000000, found 7"),
            (
                "b",
                Limit::Processor,
                Some(u64::MAX),
                "CPU time must be 1 to 100000 % of one CPU, found 18446744073709551615",
            ),
            ("b", Limit::Memory, None, "`b` already has these limits"),
            ("a", Limit::Processes, Some(64), "`a` already has these limits"),
            ("open", Limit::Memory, Some(64), "`open` is not sandboxed"),
            ("far", Limit::Memory, Some(64), "`far` is a remote server"),
            ("nobody", Limit::Memory, Some(64), "no server is named `nobody`"),
        ] {
            let problem = planned(&home, server, &[(limit, value)]).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
        let change = planned(&home, "b", &[(Limit::Memory, Some(64))]).unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT.replace("mine", "theirs")).unwrap();
        assert!(change.write().unwrap_err().to_string().contains("has changed since it was read"));
        assert_eq!(own(&home, "b"), []);
    }
}
