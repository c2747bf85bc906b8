//! `mcp-servers.json`: which servers there are, and how each is contained.
//!
//! - A server without a `sandbox` entry is sandboxed; only `false` opts out.
//! - A key that is not known is an error that names it: a server never runs with less than was asked.

use super::entry_error::{EntryError, EntryPathError};
use super::sandbox::{PassEnv, Sandbox, SandboxSettings};
use super::{ConfigError, Text};
use crate::home::Home;
use crate::mounts::FileWrites;
use ironcurtain_egress::HostRules;
use ironcurtain_policy::strict;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// One configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its description, in the person's words.
    pub description: Option<String>,
    /// Its program: a name found on the path, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it is given.
    pub env: BTreeMap<String, String>,
    /// Variables of ours that it is given.
    pub pass_env: PassEnv,
    /// Its containment.
    pub sandbox: Sandbox,
    /// The way it writes files.
    pub file_writes: FileWrites,
}

impl Server {
    /// The patterns of hosts it may reach; none when it has no network. One that opted out has no such list.
    #[must_use]
    pub fn allowed_domains(&self) -> Option<&[String]> {
        let network = self.sandbox.settings()?.network.as_ref();
        Some(network.map_or(&[], |network| &network.allowed_domains))
    }

    /// Its command line, for people.
    #[must_use]
    pub fn command_line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// All configured servers, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers(BTreeMap<String, Server>);

impl Servers {
    /// The embedded filesystem server, there without any configuration.
    pub const DEFAULT: &str = r#"{ "filesystem": { "command": "ironcurtain-filesystem", "args": [] } }"#;

    /// Reads the file; without one, there is the embedded filesystem server.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file, the server and the key.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        Self::of(&Self::text(home)?, &home.person)
    }

    pub(crate) fn text(home: &Home) -> Result<Text, ConfigError> {
        Text::read(home.config.join("mcp-servers.json"))
    }

    /// Reads the servers from the file's text; without a file, there is the embedded filesystem server.
    pub(crate) fn of(text: &Text, person: &Path) -> Result<Self, ConfigError> {
        Self::parse(text.content.as_deref().unwrap_or(Self::DEFAULT), &text.path, person)
    }

    /// The server of this name; without one, the only server there is.
    #[must_use]
    pub fn find(&self, name: Option<&str>) -> Option<&Server> {
        match name {
            Some(name) => self.0.get(name),
            None if self.0.len() == 1 => self.0.values().next(),
            None => None,
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.values()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|server| server.name.as_str())
    }

    /// The servers of a file of this text.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file, the server and the key.
    pub fn parse(text: &str, path: &Path, home: &Path) -> Result<Self, ConfigError> {
        let invalid = |line: Option<usize>, problem: String| ConfigError::invalid(path, line, problem);
        let entries: Map<String, Value> =
            strict::read(text).map_err(|misread| invalid(misread.line, misread.to_string()))?;
        let mut servers = BTreeMap::new();
        for (name, entry) in entries.into_iter().filter(|(name, _)| !name.starts_with("_comment")) {
            let wrong = |line, problem: &dyn Display| invalid(line, format!("server `{name}`: {problem}"));
            let stored =
                strict::read_part(text, &[&name], entry).map_err(|misread| wrong(misread.line, &misread))?;
            let server = one(&name, stored, home)
                .map_err(|problem| wrong(strict::line_of(text, &[&name]), &problem))?;
            servers.insert(name, server);
        }
        Ok(Self(servers))
    }
}

/// One entry of the file.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Server"))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredServer {
    /// Its program: a name found on the path, or an absolute path.
    #[cfg_attr(test, schemars(length(min = 1)))]
    command: String,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Variables it is given.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables of the person's that it is given: their names, or `"*"` for all.
    #[cfg_attr(test, schemars(with = "super::schemas::NamesOrAll"))]
    #[serde(default)]
    pass_env: PassEnv,
    /// Its description, for people.
    #[serde(default)]
    description: Option<String>,
    /// Its containment: absent for the defaults, `false` for no sandbox at all, or what is to be different.
    #[cfg_attr(test, schemars(with = "super::schemas::FalseOr<SandboxSettings>"))]
    #[serde(default)]
    sandbox: Sandbox,
    /// `in-place`, or `replace` for a server that writes a new file and renames it over the old one.
    #[serde(default)]
    file_writes: StoredFileWrites,
    /// Read by nobody.
    #[serde(default, rename = "_comment")]
    _comment: Option<Value>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "FileWrites"))]
#[serde(rename_all = "kebab-case")]
enum StoredFileWrites {
    #[default]
    InPlace,
    Replace,
}

fn one(name: &str, stored: StoredServer, home: &Path) -> Result<Server, EntryError> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(EntryError::Name);
    }
    if stored.command.is_empty() {
        return Err(EntryError::NoCommand);
    }
    if let Some((variable, _)) = stored.env.iter().find(|(_, value)| value.starts_with("keyring:")) {
        return Err(EntryError::Keyring(variable.clone()));
    }
    if let Sandbox::Sandboxed(settings) = &stored.sandbox {
        checked(settings)?;
    }
    Ok(Server {
        name: name.to_owned(),
        description: stored.description,
        command: expanded(&stored.command, home)?,
        args: stored.args,
        env: stored.env,
        pass_env: stored.pass_env,
        sandbox: stored.sandbox,
        file_writes: match stored.file_writes {
            StoredFileWrites::InPlace => FileWrites::InPlace,
            StoredFileWrites::Replace => FileWrites::Replace,
        },
    })
}

/// Refuses what could only be a mistake.
fn checked(settings: &SandboxSettings) -> Result<(), EntryError> {
    let files = &settings.filesystem;
    let lists = [
        ("allowWrite", files.allow_write.as_slice(), true),
        ("allowRead", files.allow_read.as_slice(), false),
        ("denyRead", files.deny_read.as_deref().unwrap_or_default(), false),
        ("denyWrite", files.deny_write.as_slice(), true),
    ];
    for (list, paths, may_be_relative) in lists {
        for path in paths {
            checked_path(path, may_be_relative).map_err(|source| EntryError::Path { list, source })?;
        }
    }
    let Some(network) = &settings.network else { return Ok(()) };
    let none: &[String] = &[];
    for (list, allowed, denied) in [
        ("allowedDomains", network.allowed_domains.as_slice(), none),
        ("deniedDomains", none, network.denied_domains.as_slice()),
    ] {
        HostRules::new(allowed, denied, false).map_err(|source| EntryError::Host { list, source })?;
    }
    Ok(())
}

fn checked_path(path: &str, may_be_relative: bool) -> Result<(), EntryPathError> {
    if path.is_empty() || path.contains('\0') {
        return Err(EntryPathError::NotAPath(path.to_owned()));
    }
    if path.starts_with('~') && path != "~" && !path.starts_with("~/") {
        return Err(EntryPathError::NamedHome(path.to_owned()));
    }
    if !may_be_relative && !path.starts_with(['/', '~']) {
        return Err(EntryPathError::Relative(path.to_owned()));
    }
    Ok(())
}

/// `~` is the person's home; `~name` is nobody's business.
fn expanded(path: &str, home: &Path) -> Result<String, EntryPathError> {
    let home = home.to_str().ok_or(EntryPathError::Home)?;
    match path.strip_prefix('~') {
        None => Ok(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Ok(format!("{home}{rest}")),
        Some(_) => Err(EntryPathError::NamedHome(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        AutostartSettings, FileView, FilesystemSettings, GitConfigSettings, LimitSettings, NetworkSettings,
    };

    fn parse(text: &str) -> Result<Servers, String> {
        Servers::parse(text, Path::new("/c/mcp-servers.json"), Path::new("/home/u"))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_server_is_sandboxed_unless_it_opts_out() {
        let servers = parse(
            r#"{ "_comment_x": 1, "a": { "command": "~/bin/a", "_comment": "one" },
                 "b": { "command": "b", "args": ["1"], "sandbox": false, "fileWrites": "replace", "passEnv": "*" },
                 "c": { "command": "c", "sandbox": { "network": false, "filesystem": { "allowRead": ["~/lib"] } } } }"#,
        )
        .unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let a = servers.find(Some("a")).unwrap();
        assert_eq!((a.command.as_str(), &a.sandbox), ("/home/u/bin/a", &Sandbox::default()));
        assert_eq!(a.allowed_domains(), Some(&[][..]));
        let b = servers.find(Some("b")).unwrap();
        assert_eq!((&b.sandbox, b.file_writes), (&Sandbox::OptedOut, FileWrites::Replace));
        assert_eq!((b.allowed_domains(), &b.pass_env), (None, &PassEnv::All));
        let c = servers.find(Some("c")).unwrap().sandbox.settings().unwrap();
        assert_eq!((c.filesystem.allow_read.as_slice(), &c.network), (&["~/lib".to_owned()][..], &None));
        assert_eq!(servers.find(None), None);
        assert!(parse(Servers::DEFAULT).unwrap().find(None).is_some());
    }

    #[test]
    fn every_key_is_read() {
        let servers = parse(
            r#"{ "s": { "command": "c", "args": ["x"], "env": { "A": "1" }, "passEnv": ["B"], "description": "d",
                 "sandbox": { "view": "host-read",
                   "filesystem": { "allowWrite": [".git", "/w"], "allowRead": ["~/r"], "denyRead": [], "denyWrite": ["/w/n"], "allowPersistence": [".git"] },
                   "network": { "allowedDomains": ["a.example", "*.b.example:8443"], "deniedDomains": ["c.b.example"], "askUnknown": true },
                   "autostart": "strict", "gitConfig": "guarded",
                   "limits": { "memoryMib": 11, "cpuPercent": 10, "processes": 9, "openFiles": 8, "fileSizeMib": 7, "tmpSizeMib": 6 } } } }"#,
        )
        .unwrap();
        let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let expected = Server {
            name: "s".into(),
            description: Some("d".into()),
            command: "c".into(),
            args: texts(&["x"]),
            env: BTreeMap::from([("A".into(), "1".into())]),
            pass_env: PassEnv::Named(texts(&["B"])),
            sandbox: Sandbox::Sandboxed(Box::new(SandboxSettings {
                view: Some(FileView::HostRead),
                filesystem: FilesystemSettings {
                    allow_write: texts(&[".git", "/w"]),
                    allow_read: texts(&["~/r"]),
                    deny_read: Some(vec![]),
                    deny_write: texts(&["/w/n"]),
                    allow_persistence: texts(&[".git"]),
                },
                network: Some(NetworkSettings {
                    allowed_domains: texts(&["a.example", "*.b.example:8443"]),
                    denied_domains: texts(&["c.b.example"]),
                    ask_unknown: true,
                }),
                autostart: AutostartSettings::Strict,
                git_config: Some(GitConfigSettings::Guarded),
                limits: LimitSettings {
                    memory_mib: Some(11),
                    cpu_percent: Some(10),
                    processes: Some(9),
                    open_files: Some(8),
                    file_size_mib: Some(7),
                    tmp_size_mib: Some(6),
                },
            })),
            file_writes: FileWrites::InPlace,
        };
        assert_eq!(servers.find(None), Some(&expected));
        assert_eq!(expected.allowed_domains(), Some(&texts(&["a.example", "*.b.example:8443"])[..]));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let problem = |entry: &str| {
            let text = parse(&format!("{{ \"x\": {entry} }}")).unwrap_err();
            text.strip_prefix("`/c/mcp-servers.json`, line 1: server `x`: ").unwrap_or(&text).to_owned()
        };
        let sandbox = |sandbox: &str| problem(&format!(r#"{{ "command": "c", "sandbox": {sandbox} }}"#));
        let files = |list: &str| sandbox(&format!(r#"{{ "filesystem": {list} }}"#));
        let starts = |text: String, start: &str| assert!(text.starts_with(start), "{text}");
        starts(
            sandbox(r#"{ "filesystem": { "allowExec": [] } }"#),
            "`sandbox.filesystem.allowExec`: unknown field",
        );
        starts(sandbox(r#"{ "view": "all" }"#), "`sandbox.view`: unknown variant `all`");
        starts(sandbox(r#"{ "autostart": "off" }"#), "`sandbox.autostart`: unknown variant `off`");
        starts(sandbox(r#"{ "gitConfig": "open" }"#), "`sandbox.gitConfig`: unknown variant `open`");
        starts(sandbox("true"), "`sandbox`: invalid value: boolean `true`, expected `false` or an object");
        starts(sandbox("[]"), "`sandbox`: invalid type: list, expected `false` or an object");
        starts(sandbox(r#"{ "network": true }"#), "`sandbox.network`: invalid value: boolean `true`");
        starts(sandbox(r#"{ "network": {} }"#), "`sandbox.network`: missing field `allowedDomains`");
        starts(
            sandbox(r#"{ "limits": { "memory": 1 } }"#),
            "`sandbox.limits.memory`: unknown field `memory`",
        );
        starts(
            files(r#"{ "allowRead": ["lib"] }"#),
            "`sandbox.filesystem.allowRead`: `lib` is a relative path",
        );
        starts(
            files(r#"{ "allowWrite": ["~bob"] }"#),
            "`sandbox.filesystem.allowWrite`: `~bob`: `~name` is not",
        );
        starts(files(r#"{ "denyRead": [""] }"#), "`sandbox.filesystem.denyRead`: `` is not a path");
        let host = sandbox(r#"{ "network": { "allowedDomains": ["https://a"] } }"#);
        starts(host, "`sandbox.network.allowedDomains`: `https://a` is not a host: write it without");
        let any = sandbox(r#"{ "network": { "allowedDomains": [], "deniedDomains": ["*", "a..b"] } }"#);
        starts(any, "`sandbox.network.deniedDomains`: `a..b` cannot be the name of a host");
        let all = sandbox(r#"{ "network": { "allowedDomains": ["*"] } }"#);
        starts(all, "`sandbox.network.allowedDomains`: `*` covers too much");
        starts(problem(r#"{ "command": "c", "passEnv": "A" }"#), "`passEnv`: invalid value: string \"A\"");
        starts(problem(r#"{ "command": "~root/c" }"#), "`~root/c`");
        starts(problem(r#"{ "command": "" }"#), "`command` is empty");
        assert!(parse(r#"{ "x/y": { "command": "c" } }"#).unwrap_err().contains("its name may have"));
        assert!(parse(r#"{ "x": "#).unwrap_err().contains("line 1"));
        starts(problem("[\"c\"]"), "invalid type: list, expected an object");
        starts(
            sandbox(r#"{ "limits": { "processes": 4294967296.5 } }"#),
            "`sandbox.limits.processes`: invalid type",
        );
    }

    #[test]
    fn a_name_that_comes_twice_is_refused_with_its_line() {
        let good = "{ \"x\": { \"command\": \"c\" },\n  \"y\": { \"command\": \"c\", \"sandbox\": false, \"env\": { \"A\": \"1\", \"B\": \"2\" } } }";
        assert!(parse(good).is_ok());
        for (name, other) in [("x", "y"), ("command", "sandbox"), ("A", "B")] {
            let twice = good.replace(&format!("\"{other}\""), &format!("\"{name}\""));
            let told = parse(&twice).unwrap_err();
            let wanted = format!("`/c/mcp-servers.json`, line 2: `{name}` comes twice");
            assert!(told.starts_with(&wanted), "{told}");
        }
    }
}
