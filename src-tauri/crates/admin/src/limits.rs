//! The limits of a server's resources: those in force, and changing them.
//!
//! - A limit that an entry does not name has the default; nothing takes a default away.
//! - A value is taken only where a server can start with it.
//! - Only `limits` of the one entry changes.

use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_client_config::Edit;
use ironcurtain_config::Sandbox;
use ironcurtain_config::home::Home;
use ironcurtain_config::{LimitSettings, Server};
use ironcurtain_daemon::containment::limits as in_force;
use ironcurtain_sandbox::ResourceLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// One kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Memory, in MiB.
    Memory,
    /// Processor time, in percent of one processor.
    Processor,
    /// Processes and threads together.
    Processes,
    /// Open descriptors of each process.
    OpenFiles,
    /// The largest file that it may write, in MiB.
    FileSize,
    /// Its private `/tmp`, in MiB.
    TmpSize,
}

/// A limit of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimit {
    /// Its kind.
    pub limit: Limit,
    /// The value that the server's entry names.
    pub own: Option<u64>,
    /// The value where the entry names none; none where there is no limit then.
    pub default: Option<u64>,
}

/// A limit as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitDifference {
    /// It lets the server have more.
    pub is_looser: bool,
    /// A sentence on what changes.
    pub words: String,
}

/// A change of limits, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsChange {
    /// The server.
    pub server: String,
    /// The differences, the looser first.
    pub differences: Vec<LimitDifference>,
    /// The change of its entry's sandbox, in the form of `diff -u` without its heading. No secret stands there.
    pub diff: String,
    servers: ServersFile,
    after: String,
}

/// Why limits are not changed.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// The entry is not changed.
    #[error(transparent)]
    Server(#[from] ServerChangeError),
    /// No server could start with it.
    #[error(
        "{} cannot be {value}: write {} to {} {}", .limit.name().to_lowercase(), .limit.range().start(),
        .limit.range().end(), .limit.unit()
    )]
    Range {
        /// The limit.
        limit: Limit,
        /// Its value.
        value: u64,
    },
    /// Nothing would change.
    #[error("the limits of `{0}` are like that already")]
    Same(String),
}

impl Limit {
    const ALL: [Self; 6] =
        [Self::Memory, Self::Processor, Self::Processes, Self::OpenFiles, Self::FileSize, Self::TmpSize];

    /// The values that are taken.
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

    /// Its name for a person.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "Memory",
            Self::Processor => "Processor time",
            Self::Processes => "Processes and threads",
            Self::OpenFiles => "Open files of each process",
            Self::FileSize => "Largest file",
            Self::TmpSize => "Its own /tmp",
        }
    }

    /// The unit behind a value, or nothing.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory | Self::FileSize | Self::TmpSize => "MiB",
            Self::Processor => "% of one processor",
            Self::Processes | Self::OpenFiles => "",
        }
    }

    /// The outcomes of a looser and of a tighter limit.
    fn outcomes(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory => ("it can take more memory from other programs", "it fails where it needs more"),
            Self::Processor => ("it can slow other programs down more", "it is slower where it needs more"),
            Self::Processes => ("it can start more at once", "it fails where it starts more"),
            Self::OpenFiles => ("it can hold more files open", "it fails where it opens more"),
            Self::FileSize => ("it can fill more of the disk with one file", "it cannot write a larger file"),
            Self::TmpSize => ("it can fill more memory with files of its own", "it cannot keep more there"),
        }
    }

    /// A value of it for a person.
    #[must_use]
    pub fn words(self, value: Option<u64>) -> String {
        let Some(value) = value else { return "no limit".to_owned() };
        format!("{value} {}", self.unit()).trim_end().to_owned()
    }

    /// The values of an entry, and those in force.
    fn of(self, settings: &LimitSettings, limits: &ResourceLimits) -> (Option<u64>, Option<u64>) {
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

/// The limits of a server; none of one that has no sandbox here.
#[must_use]
pub fn limits(server: &Server) -> Vec<ServerLimit> {
    let Some(settings) = server.sandbox.settings().filter(|_| server.remote.is_none()) else {
        return Vec::new();
    };
    let default = in_force(&LimitSettings::default());
    let limit = |limit: Limit| {
        let (own, default) = limit.of(&settings.limits, &default);
        ServerLimit { limit, own, default }
    };
    Limit::ALL.into_iter().map(limit).collect()
}

impl LimitsChange {
    /// Other limits of a server: each that is named, and the default where no value is.
    ///
    /// # Errors
    /// [`LimitsError`].
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
        let (way, entry) = servers.entry(server)?;
        let path: Vec<&str> = way.iter().map(String::as_str).chain(["sandbox", "limits"]).collect();
        let text = if after == LimitSettings::default() {
            servers.without(&path)?
        } else {
            servers.with(&path, &json!(after))?
        };
        let differences = differences(&before, &after);
        let diff = diff_of_sandbox(entry.get("sandbox"), &after);
        Ok(Self { server: server.to_owned(), differences, diff, servers, after: text })
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`ServerChangeError`]: the servers are as they were.
    pub fn write(&self) -> Result<(), ServerChangeError> {
        self.servers.write(&self.after)
    }
}

/// The limits in force that are not what they were, the looser first.
fn differences(before: &LimitSettings, after: &LimitSettings) -> Vec<LimitDifference> {
    let (was, is) = (in_force(before), in_force(after));
    let difference = |limit: Limit| {
        let ((_, was), (_, is)) = (limit.of(before, &was), limit.of(after, &is));
        let is_looser = match (was, is) {
            (Some(was), Some(is)) => is > was,
            (was, _) => was.is_some(),
        };
        let (looser, tighter) = limit.outcomes();
        let (word, outcome) = if is_looser { ("Looser", looser) } else { ("Tighter", tighter) };
        let (name, now, then) = (limit.name(), limit.words(was), limit.words(is));
        let words = format!("{name}: {then} in place of {now}. {word}: {outcome}.");
        (was != is).then_some(LimitDifference { is_looser, words })
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
    fn limits_are_changed_in_their_place_after_words_that_say_which_way() {
        let (_dir, home) = home();
        let wanted = [
            (Limit::Memory, Some(512)),
            (Limit::Processor, Some(50)),
            (Limit::Processes, None),
            (Limit::OpenFiles, Some(9000)),
        ];
        let change = planned(&home, "a", &wanted).unwrap();
        let words: Vec<_> =
            change.differences.iter().map(|one| (one.is_looser, one.words.as_str())).collect();
        let expected = [
            (true, "Processes and threads: 1024 in place of 64. Looser: it can start more at once."),
            (true, "Open files of each process: 9000 in place of 4096. Looser: it can hold more files open."),
            (false, "Memory: 512 MiB in place of 4096 MiB. Tighter: it fails where it needs more."),
            (
                false,
                "Processor time: 50 % of one processor in place of no limit. Tighter: it is slower where it needs more.",
            ),
        ];
        assert_eq!(words, expected);
        assert!(change.diff.contains("\n+      \"memoryMib\": 512"), "{}", change.diff);
        assert_eq!(own(&home, "a"), [(Limit::Processes, 64)], "nothing is written yet");
        change.write().unwrap();
        assert_eq!(own(&home, "a"), [(Limit::Memory, 512), (Limit::Processor, 50), (Limit::OpenFiles, 9000)]);
        let defaults = Limit::ALL.map(|limit| (limit, None));
        let back = planned(&home, "a", &defaults).unwrap();
        assert!(back.differences[0].words.starts_with("Memory: 4096 MiB in place of 512 MiB. Looser:"));
        assert!(back.differences[1].words.starts_with("Processor time: no limit in place of 50 %"));
        back.write().unwrap();
        let text = fs::read_to_string(home.config.join("mcp-servers.json")).unwrap();
        assert!(!text.contains("limits") && text.contains("\"network\": false"), "{text}");
        planned(&home, "b", &[(Limit::TmpSize, Some(64))]).unwrap().write().unwrap();
        assert_eq!(own(&home, "b"), [(Limit::TmpSize, 64)]);
    }

    #[test]
    fn what_no_server_could_start_with_is_refused_and_nothing_is_written() {
        let (_dir, home) = home();
        for (server, limit, value, told) in [
            ("b", Limit::Memory, Some(0), "memory cannot be 0: write 32 to 1048576 MiB"),
            ("b", Limit::Processes, Some(7), "processes and threads cannot be 7: write 8 to 1000000"),
            (
                "b",
                Limit::Processor,
                Some(u64::MAX),
                "processor time cannot be 18446744073709551615: write 1 to 100000 % of one processor",
            ),
            ("b", Limit::Memory, None, "the limits of `b` are like that already"),
            ("a", Limit::Processes, Some(64), "the limits of `a` are like that already"),
            ("open", Limit::Memory, Some(64), "`open` is not sandboxed"),
            ("far", Limit::Memory, Some(64), "`far` runs elsewhere"),
            ("nobody", Limit::Memory, Some(64), "no server is named `nobody`"),
        ] {
            let problem = planned(&home, server, &[(limit, value)]).unwrap_err();
            assert!(problem.starts_with(told), "{problem}");
        }
        let change = planned(&home, "b", &[(Limit::Memory, Some(64))]).unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT.replace("mine", "theirs")).unwrap();
        assert!(change.write().unwrap_err().to_string().contains("was changed meanwhile"));
        assert_eq!(own(&home, "b"), []);
    }
}
