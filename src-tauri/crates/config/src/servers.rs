//! Parses `mcp-servers.json`, which contains the servers and their sandbox settings.
//!
//! - A server without a `sandbox` key is sandboxed. Only `false` disables the sandbox.
//! - An unknown key is an error that names the key, so a typo cannot weaken a sandbox.
//! - Accepts entries as agent clients write them, with or without the wrapper object (see [`super::stored`]).

use super::entry_error::EntryError;
use super::server::Server;
use super::stored::{self, StoredServer};
use super::stored_remote::StoredRemote;
use super::{ConfigError, ConfigText, Managed};
use crate::home::Home;
use ironcurtain_policy::strict;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

/// All configured servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Servers {
    by_name: BTreeMap<String, Server>,
    /// Names of the disabled servers.
    disabled: BTreeSet<String>,
    /// Keys that agent clients use and IronCurtain ignores, with the server's name.
    ignored: BTreeSet<(String, &'static str)>,
}

impl Servers {
    /// Configuration used if the file is missing: only the embedded filesystem server.
    pub const DEFAULT: &str = r#"{ "filesystem": { "command": "ironcurtain-filesystem", "args": [] } }"#;

    /// Loads the file. If it does not exist, returns the embedded filesystem server.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] that names the file, the server and the key.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        Ok(Self::from_text(&Self::read_text(home)?, &home.user_home)?.restricted(Managed::load()?.as_ref()))
    }

    /// Reads `mcp-servers.json` without parsing it.
    ///
    /// # Errors
    /// Returns [`ConfigError::Io`] if the file exists but cannot be read.
    pub fn read_text(home: &Home) -> Result<ConfigText, ConfigError> {
        ConfigText::read(home.config.join("mcp-servers.json"))
    }

    /// Parses the text of the file. If the file does not exist, returns the embedded filesystem server.
    pub fn from_text(text: &ConfigText, user_home: &Path) -> Result<Self, ConfigError> {
        Self::parse(text.content.as_deref().unwrap_or(Self::DEFAULT), &text.path, user_home)
    }

    /// Returns the servers with the restrictions of the user's organization applied.
    #[must_use]
    pub fn restricted(mut self, managed: Option<&Managed>) -> Self {
        if let Some(managed) = managed {
            for server in self.by_name.values_mut() {
                managed.settings.restrict_server(server, &managed.organization);
            }
        }
        self
    }

    /// Returns the server with this name. Without a name, returns the only server, if there is exactly one.
    #[must_use]
    pub fn find(&self, name: Option<&str>) -> Option<&Server> {
        match name {
            Some(name) => self.by_name.get(name),
            None if self.by_name.len() == 1 => self.by_name.values().next(),
            None => None,
        }
    }

    /// Iterates over the servers, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Server> {
        self.by_name.values()
    }

    /// Iterates over the servers' names in sorted order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|server| server.name.as_str())
    }

    /// Returns `true` if the server with this name is disabled.
    #[must_use]
    pub fn is_disabled(&self, name: &str) -> bool {
        self.disabled.contains(name)
    }

    /// Returns the keys in a server's entry that agent clients use and IronCurtain ignores.
    pub fn ignored(&self, name: &str) -> impl Iterator<Item = &'static str> {
        self.ignored.iter().filter(move |(server, _)| server == name).map(|(_, key)| *key)
    }

    /// Parses `text` as the contents of the file at `path`. Errors name that path.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] that names the file, the server and the key.
    pub fn parse(text: &str, path: &Path, home: &Path) -> Result<Self, ConfigError> {
        let invalid = |line: Option<usize>, problem: String| ConfigError::invalid(path, line, problem);
        let entries: Map<String, Value> =
            strict::read(text).map_err(|misread| invalid(misread.line, misread.to_string()))?;
        let mut servers = Self::default();
        for stored::StoredEntry { name, keys, value } in stored::entries(entries) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let wrong = |line, problem: &dyn Display| invalid(line, format!("server `{name}`: {problem}"));
            let at_entry = |problem: EntryError| wrong(strict::line_of(text, &keys), &problem);
            if stored::is_disabled(&value) {
                servers.disabled.insert(name);
                continue;
            }
            let misread = |misread: strict::ReadError| wrong(misread.line, &misread);
            let server = if stored::is_remote(&value).map_err(at_entry)? {
                let stored: StoredRemote = strict::read_part(text, &keys, value).map_err(misread)?;
                servers.ignored.extend(stored.ignored().map(|key| (name.clone(), key)));
                stored.into_server(&name)
            } else {
                let stored: StoredServer = strict::read_part(text, &keys, value).map_err(misread)?;
                servers.ignored.extend(stored.ignored().map(|key| (name.clone(), key)));
                stored.into_server(&name, home)
            };
            let server = server.map_err(at_entry)?;
            if servers.by_name.insert(name.clone(), server).is_some() {
                return Err(at_entry(EntryError::Duplicate));
            }
        }
        Ok(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AutostartSettings, FileView, FilesystemSettings, GitConfigSettings, LimitSettings, NetworkSettings,
        PassEnv, Sampling, Sandbox, SandboxSettings, ServerAccess, ToolPinning,
    };
    use ironcurtain_policy::{FileWrites, Unannotated};

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
    fn entries_in_agent_clients_format_are_accepted() {
        let printed = r#"{ "mcpServers": {
            "a": { "type": "stdio", "command": "npx", "args": ["-y", "x"], "alwaysAllow": ["t"], "autoApprove": [] },
            "off": { "command": "b", "disabled": true }, "far": { "url": "https://x", "disabled": true } },
          "b": { "type": "local", "command": "b", "disabled": false } }"#;
        let servers = parse(printed).unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["a", "b"]);
        let plain = parse(r#"{ "a": { "command": "npx", "args": ["-y", "x"] } }"#).unwrap();
        assert_eq!(servers.find(Some("a")), plain.find(None));
        assert_eq!(servers.ignored("a").collect::<Vec<_>>(), ["alwaysAllow", "autoApprove"]);
        assert_eq!(servers.ignored("b").count(), 0);
        assert!(servers.is_disabled("off") && servers.is_disabled("far") && !servers.is_disabled("a"));
    }

    #[test]
    fn remote_entries_in_agent_clients_format_are_accepted() {
        let servers = parse(
            r#"{ "mcpServers": {
                "a": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "keyring:a" } },
                "b": { "type": "streamable-http", "serverUrl": "https://b.example:8443/", "alwaysAllow": [] },
                "c": { "httpUrl": "http://localhost:3001/mcp" } } }"#,
        )
        .unwrap();
        let summary = |name| {
            let server = servers.find(Some(name)).unwrap();
            let remote = server.remote.as_ref().unwrap();
            (server.command_line(), remote.target().to_string(), server.sandbox == Sandbox::OptedOut)
        };
        let owned = |at: &str, target: &str| (at.to_owned(), target.to_owned(), true);
        assert_eq!(summary("a"), owned("https://mcp.example.com/mcp", "mcp.example.com:443"));
        assert_eq!(summary("b"), owned("https://b.example:8443/", "b.example:8443"));
        assert_eq!(summary("c"), owned("http://localhost:3001/mcp", "localhost:3001"));
        assert_eq!(servers.ignored("b").collect::<Vec<_>>(), ["alwaysAllow"]);
    }

    #[test]
    fn rejected_entries_say_what_to_write() {
        for (entry, expected) in [
            (
                r#"{ "url": "http://a.example/mcp" }"#,
                "`url`: data sent to `a.example` over `http` is not encrypted",
            ),
            (
                r#"{ "type": "sse", "serverUrl": "https://a.example/sse" }"#,
                "`type`: the old `sse` transport is not supported; write the server's streamable HTTP address",
            ),
            (
                r#"{ "type": "ws", "url": "https://a.example/" }"#,
                "`type`: unknown variant `ws`, expected one of `http`, `streamable-http`, `streamableHttp`",
            ),
            (
                r#"{ "url": "https://a.example/", "sandbox": {} }"#,
                "`sandbox`: a remote server cannot be sandboxed, because it runs elsewhere; remove it",
            ),
            (r#"{ "url": "https://a.example/", "env": {} }"#, "`env` is for local servers"),
            (
                r#"{ "command": "x", "env": { "A": "keyring:" } }"#,
                "`env.A`: `` cannot be the name of a secret",
            ),
            (
                r#"{ "type": "http", "command": "x" }"#,
                "`type`: unknown variant `http`, expected `stdio` or `local`",
            ),
            (
                r#"{ "command": ["npx", "-y"] }"#,
                "`command` is a list; write the program as `command` and the rest as `args`",
            ),
            (r#"{ "command": "x", "disabled": 1 }"#, "`disabled`: invalid type"),
            (
                r#"{ "command": "x", "sandbox": false, "unannotated": "ask" }"#,
                "`unannotated` is `ask` and `sandbox` is `false`: the effects of unannotated tools are unknown",
            ),
            (
                r#"{ "command": "x", "sandbox": false, "access": "ask" }"#,
                "`access` is `ask` and `sandbox` is `false`: only a sandboxed server can be made to ask",
            ),
            (
                r#"{ "command": "x", "sandbox": { "view": "roots" }, "access": "ask" }"#,
                "`sandbox.view` has no effect while `access` is `ask`",
            ),
            (r#"{ "command": "x", "access": "all" }"#, "`access`: unknown variant `all`"),
            (r#"{ "command": "x", "unannotated": "allow" }"#, "`unannotated`: unknown variant `allow`"),
        ] {
            let problem = parse(&format!(r#"{{ "mcpServers": {{ "x": {entry} }} }}"#)).unwrap_err();
            assert!(problem.contains(&format!("line 1: server `x`: {expected}")), "{entry}: {problem}");
        }
        let twice = parse(r#"{ "mcpServers": { "x": { "command": "c" } }, "x": { "command": "d" } }"#);
        assert!(
            twice
                .unwrap_err()
                .contains("server `x`: it is defined both inside and outside `mcpServers`; remove one")
        );
        assert!(parse(r#"{ "mcpServers": 7 }"#).unwrap_err().contains("server `mcpServers`: "));
    }

    #[test]
    fn every_key_is_parsed() {
        let servers = parse(
            r#"{ "s": { "command": "c", "args": ["x"], "env": { "A": "1" }, "passEnv": ["B"], "worksWith": ["~/notes", "/srv/list.txt"], "description": "d", "sampling": "deny",
                 "sandbox": { "view": "host-read",
                   "filesystem": { "allowWrite": [".git", "/w"], "allowRead": ["~/r"], "denyRead": [], "denyWrite": ["/w/n"], "allowPersistence": [".git"] },
                   "network": { "allowedDomains": ["a.example", "*.b.example:8443"], "deniedDomains": ["c.b.example"], "askUnknown": true },
                   "autostart": "strict", "gitConfig": "guarded", "unixSockets": true,
                   "limits": { "memoryMib": 11, "cpuPercent": 10, "processes": 9, "openFiles": 8, "fileSizeMib": 7, "tmpSizeMib": 6 } },
                 "unannotated": "ask", "pin": "warn" } }"#,
        )
        .unwrap();
        let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let expected = Server {
            name: "s".into(),
            description: Some("d".into()),
            remote: None,
            command: "c".into(),
            args: texts(&["x"]),
            env: BTreeMap::from([("A".into(), "1".into())]),
            pass_env: PassEnv::Named(texts(&["B"])),
            works_with: texts(&["/home/u/notes", "/srv/list.txt"]),
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
                unix_sockets: true,
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
            access: ServerAccess::Grants,
            unannotated: Unannotated::Ask,
            sampling: Sampling::Deny,
            pin: ToolPinning::Warn,
            refused: None,
        };
        assert_eq!(servers.find(None), Some(&expected));
        assert_eq!(expected.allowed_domains(), Some(&texts(&["a.example", "*.b.example:8443"])[..]));
    }

    #[test]
    fn the_network_can_be_asked_about_as_a_whole() {
        let network = |value: &str| {
            let text = format!(r#"{{ "s": {{ "command": "c", "sandbox": {{ "network": {value} }} }} }}"#);
            parse(&text).map(|servers| {
                let server = servers.find(None).unwrap();
                server.sandbox.settings().unwrap().network.clone()
            })
        };
        assert_eq!(network("\"ask\""), Ok(Some(NetworkSettings::asking())));
        assert_eq!(network(r#"{ "allowedDomains": [], "askUnknown": true }"#), network("\"ask\""));
        assert_eq!(network("false"), Ok(None));
        for invalid in ["true", "\"allow\""] {
            let problem = network(invalid).unwrap_err();
            assert!(problem.contains("expected `false`, `\"ask\"` or an object"), "{problem}");
        }
    }

    #[test]
    fn unknown_keys_and_invalid_values_are_named() {
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
        starts(any, "`sandbox.network.deniedDomains`: `a..b` is not a valid host name");
        let all = sandbox(r#"{ "network": { "allowedDomains": ["*"] } }"#);
        starts(all, "`sandbox.network.allowedDomains`: `*` covers too much");
        starts(problem(r#"{ "command": "c", "passEnv": "A" }"#), "`passEnv`: invalid value: string \"A\"");
        starts(problem(r#"{ "command": "~root/c" }"#), "`~root/c`");
        starts(problem(r#"{ "command": "" }"#), "`command` is empty");
        assert!(parse(r#"{ "x/y": { "command": "c" } }"#).unwrap_err().contains("its name may contain only"));
        assert!(parse(r#"{ "x": "#).unwrap_err().contains("line 1"));
        starts(problem("[\"c\"]"), "invalid type: list, expected an object");
        starts(
            sandbox(r#"{ "limits": { "processes": 4294967296.5 } }"#),
            "`sandbox.limits.processes`: invalid type",
        );
    }

    #[test]
    fn a_duplicate_name_is_refused_with_its_line() {
        let good = "{ \"x\": { \"command\": \"c\" },\n  \"y\": { \"command\": \"c\", \"sandbox\": false, \"env\": { \"A\": \"1\", \"B\": \"2\" } } }";
        assert!(parse(good).is_ok());
        for (name, other) in [("x", "y"), ("command", "sandbox"), ("A", "B")] {
            let twice = good.replace(&format!("\"{other}\""), &format!("\"{name}\""));
            let problem = parse(&twice).unwrap_err();
            let wanted = format!("`/c/mcp-servers.json`, line 2: `{name}` comes twice");
            assert!(problem.starts_with(&wanted), "{problem}");
        }
    }
}
