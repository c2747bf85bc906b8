//! `mcp-servers.json`: which servers there are, and how each is contained.
//!
//! - A server without a `sandbox` entry is sandboxed; only `false` opts out.
//! - A sandbox key that is not implemented is an error that names it: a server never runs with less than was asked.

use super::{ConfigError, read};
use crate::home::Home;
use crate::mounts::FileWrites;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The embedded filesystem server, there without any configuration.
const DEFAULT_SERVERS: &str = r#"{ "filesystem": { "command": "ironcurtain-filesystem", "args": [] } }"#;

/// One configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its program: a name found on the path, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it is given.
    pub env: BTreeMap<String, String>,
    /// Variables passed on from ours, by name.
    pub pass_env: Vec<String>,
    /// How it is contained.
    pub containment: Containment,
    /// How it writes files.
    pub file_writes: FileWrites,
}

/// How a server is contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// In a sandbox that shows it the session sandbox, what is granted, and these paths read-only.
    Sandboxed {
        /// Absolute paths of its program's files.
        allow_read: Vec<String>,
    },
    /// With all rights of the person, by the person's explicit choice.
    OptedOut,
}

/// All configured servers, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers(BTreeMap<String, Server>);

impl Servers {
    /// Reads the file; without one, there is the embedded filesystem server.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file, the server and the key.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        let path = home.config.join("mcp-servers.json");
        let text = read(&path)?;
        Self::parse(text.as_deref().unwrap_or(DEFAULT_SERVERS), &path, &home.person)
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

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn parse(text: &str, path: &Path, home: &Path) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid { path: path.to_path_buf(), problem };
        let entries: Map<String, Value> = serde_json::from_str(text).map_err(|e| invalid(e.to_string()))?;
        let mut servers = BTreeMap::new();
        for (name, entry) in entries.into_iter().filter(|(name, _)| !name.starts_with("_comment")) {
            let server = one(&name, entry, home).map_err(|e| invalid(format!("server `{name}`: {e}")))?;
            servers.insert(name, server);
        }
        Ok(Self(servers))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    sandbox: Option<Value>,
    #[serde(default)]
    file_writes: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Overrides {
    filesystem: Filesystem,
    network: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Filesystem {
    allow_read: Vec<String>,
}

fn one(name: &str, entry: Value, home: &Path) -> Result<Server, String> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err("its name may have letters, digits, `-`, `_` and `.` only".to_owned());
    }
    let entry: Entry = serde_json::from_value(entry).map_err(|e| e.to_string())?;
    if entry.command.is_empty() {
        return Err("`command` is empty".to_owned());
    }
    if let Some((variable, _)) = entry.env.iter().find(|(_, value)| value.starts_with("keyring:")) {
        return Err(format!("`env.{variable}` is in the keyring, which this version cannot read"));
    }
    let file_writes = match entry.file_writes.as_deref() {
        None | Some("in-place") => FileWrites::InPlace,
        Some("replace") => FileWrites::Replace,
        Some(other) => return Err(format!("`fileWrites` is `{other}`; it must be `in-place` or `replace`")),
    };
    Ok(Server {
        name: name.to_owned(),
        command: expanded(&entry.command, home)?,
        args: entry.args,
        env: entry.env,
        pass_env: entry.pass_env,
        containment: containment(entry.sandbox, home)?,
        file_writes,
    })
}

fn containment(sandbox: Option<Value>, home: &Path) -> Result<Containment, String> {
    let overrides = match sandbox {
        None => Overrides::default(),
        Some(Value::Bool(false)) => return Ok(Containment::OptedOut),
        Some(object @ Value::Object(_)) => {
            serde_json::from_value(object).map_err(|e| format!("`sandbox`: {e} in this version"))?
        }
        Some(_) => return Err("`sandbox` must be `false` or an object".to_owned()),
    };
    if overrides.network == Some(true) {
        return Err(
            "`sandbox.network` is not there in this version; a sandboxed server has no network".to_owned()
        );
    }
    let allow_read =
        overrides.filesystem.allow_read.iter().map(|p| expanded(p, home)).collect::<Result<_, _>>()?;
    Ok(Containment::Sandboxed { allow_read })
}

/// `~` is the person's home; `~name` is nobody's business.
fn expanded(path: &str, home: &Path) -> Result<String, String> {
    let home = home.to_str().ok_or("the home directory is not UTF-8")?;
    match path.strip_prefix('~') {
        None => Ok(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Ok(format!("{home}{rest}")),
        Some(_) => Err(format!("`{path}`: `~name` is not expanded; write the whole path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Servers, String> {
        Servers::parse(text, Path::new("/c/mcp-servers.json"), Path::new("/home/u"))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_server_is_sandboxed_unless_it_opts_out() {
        let servers = parse(
            r#"{ "_comment_x": 1, "a": { "command": "~/bin/a" },
                 "b": { "command": "b", "args": ["1"], "sandbox": false, "fileWrites": "replace" },
                 "c": { "command": "c", "sandbox": { "network": false, "filesystem": { "allowRead": ["~/lib"] } } } }"#,
        )
        .unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let a = servers.find(Some("a")).unwrap();
        assert_eq!(
            (a.command.as_str(), &a.containment),
            ("/home/u/bin/a", &Containment::Sandboxed { allow_read: vec![] })
        );
        let b = servers.find(Some("b")).unwrap();
        assert_eq!((&b.containment, b.file_writes), (&Containment::OptedOut, FileWrites::Replace));
        let c = servers.find(Some("c")).unwrap();
        assert_eq!(c.containment, Containment::Sandboxed { allow_read: vec!["/home/u/lib".into()] });
        assert_eq!(servers.find(None), None);
        assert!(parse(DEFAULT_SERVERS).unwrap().find(None).is_some());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let problem = |text| parse(text).unwrap_err();
        let unknown =
            problem(r#"{ "x": { "command": "c", "sandbox": { "filesystem": { "allowWrite": [] } } } }"#);
        assert!(
            unknown.starts_with("`/c/mcp-servers.json`: server `x`: `sandbox`: unknown field `allowWrite`"),
            "{unknown}"
        );
        assert!(problem(r#"{ "x": { "command": "c", "sandbox": true } }"#).contains("`false` or an object"));
        assert!(
            problem(r#"{ "x": { "command": "c", "sandbox": { "network": true } } }"#).contains("no network")
        );
        assert!(problem(r#"{ "x/y": { "command": "c" } }"#).contains("its name may have"));
        assert!(problem(r#"{ "x": { "command": "~root/c" } }"#).contains("`~root/c`"));
        assert!(problem(r#"{ "x": { "command": "" } }"#).contains("`command` is empty"));
        assert!(problem(r#"{ "x": "#).contains("line 1"));
    }
}
