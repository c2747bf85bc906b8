//! Parses an entry in `mcp-servers.json`, whether written for IronCurtain or copied from an agent client.

use super::entry_error::{EntryError, EntryPathError};
use super::sandbox::{PassEnv, Sandbox, SandboxSettings};
use super::server::{Sampling, Server, ServerAccess, ToolPinning};
use ironcurtain_egress::HostRules;
use ironcurtain_policy::{FileWrites, Unannotated};
use ironcurtain_secrets as secrets;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Key of the object that contains the servers in agent clients' settings.
const WRAPPER: &str = "mcpServers";

/// A server's entry before it is parsed.
pub(super) struct StoredEntry {
    pub(super) name: String,
    /// Keys that lead from the top of the file to the entry, for error messages.
    pub(super) keys: Vec<String>,
    pub(super) value: Value,
}

/// Returns all entries of the file, inside and outside `mcpServers`.
pub(super) fn entries(top: Map<String, Value>) -> Vec<StoredEntry> {
    let mut all = Vec::new();
    for (name, value) in without_comments(top) {
        if name == WRAPPER
            && let Value::Object(wrapped) = value
        {
            all.extend(without_comments(wrapped).map(|(inner, value)| StoredEntry {
                keys: vec![name.clone(), inner.clone()],
                name: inner,
                value,
            }));
            continue;
        }
        all.push(StoredEntry { keys: vec![name.clone()], name, value });
    }
    all
}

fn without_comments(entries: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    entries.into_iter().filter(|(name, _)| !name.starts_with("_comment"))
}

/// Returns `true` if the entry is disabled, in which case its other keys are not checked.
pub(super) fn is_disabled(entry: &Value) -> bool {
    entry.get("disabled") == Some(&Value::Bool(true))
}

/// Returns `true` if the entry is for a remote server. For an unsupported form, returns an error that suggests the
/// correct one.
pub(super) fn is_remote(entry: &Value) -> Result<bool, EntryError> {
    let is_set = |key: &&str| entry.get(key).is_some();
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(EntryError::Sse);
    }
    if ["url", "serverUrl", "httpUrl"].iter().any(is_set) {
        if let Some(key) = ["command", "args", "env", "passEnv"].into_iter().find(is_set) {
            return Err(EntryError::LocalAndRemote(key));
        }
        if is_set(&"sandbox") {
            return Err(EntryError::RemoteSandbox);
        }
        return Ok(true);
    }
    if entry.get("command").is_some_and(Value::is_array) {
        return Err(EntryError::CommandList);
    }
    Ok(false)
}

/// One entry of the file.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Server"))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredServer {
    /// Program: a name found on `PATH`, or an absolute path.
    #[cfg_attr(test, schemars(length(min = 1)))]
    command: String,
    /// Arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// Treatment of the server's requests for the agent client's model (`sampling/createMessage`).
    #[serde(default)]
    sampling: Sampling,
    /// Treatment of a tool whose definition changed: `enforce` (default) suspends it until the user decides, `warn` notifies.
    #[serde(default)]
    pin: ToolPinning,
    /// Environment variables for the server.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables passed on from the user's environment: their names, or `"*"` for all.
    #[cfg_attr(test, schemars(with = "super::schemas::NamesOrAll"))]
    #[serde(default)]
    pass_env: PassEnv,
    /// Description for the user.
    #[serde(default)]
    description: Option<String>,
    /// Files and folders that the server works with, absolute or below `~`. Each requires approval, for each agent,
    /// before the server starts.
    #[serde(default)]
    works_with: Vec<String>,
    /// Access to files: `grants` (default) for those that the user grants, `ask` to ask the user when the server opens
    /// a different one. `ask` includes `"unannotated": "ask"`.
    #[serde(default)]
    access: ServerAccess,
    /// Sandbox: absent for the defaults, `false` to run unsandboxed, or an object with the differences from the defaults.
    #[cfg_attr(test, schemars(with = "super::schemas::FalseOr<SandboxSettings>"))]
    #[serde(default)]
    sandbox: Sandbox,
    /// `in-place`, or `replace` for a server that writes a new file and renames it over the old one.
    #[serde(default)]
    file_writes: StoredFileWrites,
    /// Treatment of unannotated tools: `deny` (default) refuses their calls, `ask` asks the user about each call.
    #[serde(default)]
    unannotated: StoredUnannotated,
    /// Transport, in the form that agent clients use: a local program.
    #[serde(default, rename = "type")]
    _kind: Option<StoredKind>,
    /// True to keep the entry without starting the server.
    #[serde(default, rename = "disabled")]
    _disabled: bool,
    /// Accepted and ignored: the policy and the user decide which calls are allowed.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    #[serde(default)]
    always_allow: Option<Value>,
    /// Accepted and ignored, like `alwaysAllow`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    #[serde(default)]
    auto_approve: Option<Value>,
    /// Comment, ignored.
    #[serde(default, rename = "_comment")]
    _comment: Option<Value>,
}

impl StoredServer {
    /// Returns the keys in the entry that agent clients use and IronCurtain ignores.
    pub(super) fn ignored(&self) -> impl Iterator<Item = &'static str> + use<> {
        ignored(self.always_allow.is_some(), self.auto_approve.is_some())
    }

    /// Validates the entry and returns the server.
    pub(super) fn into_server(self, name: &str, home: &Path) -> Result<Server, EntryError> {
        check_name(name)?;
        if self.command.is_empty() {
            return Err(EntryError::NoCommand);
        }
        for (variable, value) in &self.env {
            secrets::secret_reference(value)
                .map_err(|source| EntryError::Secret { variable: variable.clone(), source })?;
        }
        if let Sandbox::Sandboxed(settings) = &self.sandbox {
            check_sandbox(settings)?;
        }
        if self.sandbox == Sandbox::OptedOut && self.unannotated == StoredUnannotated::Ask {
            return Err(EntryError::AskWithoutSandbox);
        }
        if self.access == ServerAccess::Ask {
            check_ask_access(&self.sandbox)?;
        }
        Ok(Server {
            name: name.to_owned(),
            description: self.description,
            remote: None,
            command: expand_home(&self.command, home)?,
            args: self.args,
            env: self.env,
            pass_env: self.pass_env,
            works_with: expand_works_with(&self.works_with, home)?,
            access: self.access,
            sandbox: self.sandbox,
            sampling: self.sampling,
            pin: self.pin,
            refused: None,
            file_writes: match self.file_writes {
                StoredFileWrites::InPlace => FileWrites::InPlace,
                StoredFileWrites::Replace => FileWrites::Replace,
            },
            unannotated: match self.access {
                ServerAccess::Grants => self.unannotated.into(),
                ServerAccess::Ask => Unannotated::Ask,
            },
        })
    }
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Kind"))]
#[serde(rename_all = "kebab-case")]
enum StoredKind {
    Stdio,
    Local,
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

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Unannotated"))]
#[serde(rename_all = "kebab-case")]
pub(super) enum StoredUnannotated {
    #[default]
    Deny,
    Ask,
}

impl From<StoredUnannotated> for Unannotated {
    fn from(stored: StoredUnannotated) -> Self {
        match stored {
            StoredUnannotated::Deny => Self::Deny,
            StoredUnannotated::Ask => Self::Ask,
        }
    }
}

/// Returns the names of the ignored keys that are present.
pub(super) fn ignored(always_allow: bool, auto_approve: bool) -> impl Iterator<Item = &'static str> {
    let keys = [("alwaysAllow", always_allow), ("autoApprove", auto_approve)];
    keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key)
}

/// Returns an error if a server's name is invalid.
pub(super) fn check_name(name: &str) -> Result<(), EntryError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_allowed) { Err(EntryError::Name) } else { Ok(()) }
}

/// Returns an error if a path or host in the settings is invalid.
fn check_sandbox(settings: &SandboxSettings) -> Result<(), EntryError> {
    let files = &settings.filesystem;
    let lists = [
        ("allowWrite", files.allow_write.as_slice(), true),
        ("allowRead", files.allow_read.as_slice(), false),
        ("denyRead", files.deny_read.as_deref().unwrap_or_default(), false),
        ("denyWrite", files.deny_write.as_slice(), true),
    ];
    for (list, paths, may_be_relative) in lists {
        for path in paths {
            check_path(path, may_be_relative).map_err(|source| EntryError::Path { list, source })?;
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

/// Returns an error if a setting has no effect in a sandbox in which the user is asked about each file.
fn check_ask_access(sandbox: &Sandbox) -> Result<(), EntryError> {
    let settings = sandbox.settings().ok_or(EntryError::AccessAskWithoutSandbox)?;
    let files = &settings.filesystem;
    let unused = [
        ("view", settings.view.is_some()),
        ("filesystem.denyWrite", !files.deny_write.is_empty()),
        ("filesystem.allowPersistence", !files.allow_persistence.is_empty()),
    ];
    let unused = unused.into_iter().find(|(_, is_set)| *is_set);
    unused.map_or(Ok(()), |(key, _)| Err(EntryError::NoEffectWithAsk(key)))
}

fn expand_works_with(paths: &[String], home: &Path) -> Result<Vec<String>, EntryError> {
    let absolute = |path: &String| check_path(path, false).and_then(|()| expand_home(path, home));
    paths.iter().map(absolute).collect::<Result<_, _>>().map_err(EntryError::WorksWith)
}

fn check_path(path: &str, may_be_relative: bool) -> Result<(), EntryPathError> {
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

/// Expands `~` to the user's home directory. `~name` is an error.
fn expand_home(path: &str, home: &Path) -> Result<String, EntryPathError> {
    let home = home.to_str().ok_or(EntryPathError::Home)?;
    match path.strip_prefix('~') {
        None => Ok(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Ok(format!("{home}{rest}")),
        Some(_) => Err(EntryPathError::NamedHome(path.to_owned())),
    }
}
