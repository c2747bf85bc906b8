//! Server entries in clients' settings. Each client has its own format.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// File name of the shim.
const SHIM: &str = "ironcurtain-shim";

/// Timeout that Goose applies to each call, in seconds. Exceeds the time for which a question to the user stays open.
const GOOSE_SECONDS: u64 = 300;

/// Command that a client runs to start a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartCommand {
    /// Name or path of the program.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables that the client sets.
    pub env: BTreeMap<String, String>,
}

/// Server entry in a client's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsEntry {
    /// Name of the server.
    pub name: String,
    /// Whole entry, as a JSON value.
    pub value: Value,
    /// Command that starts the server; `None` for a remote server.
    pub launch: Option<StartCommand>,
    /// URL of a remote server; `None` for a server that the client starts.
    pub url: Option<String>,
    /// `true` if the client ignores the entry.
    pub is_disabled: bool,
}

/// Format in which a client writes an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{command, args, env}`.
    Plain,
    /// `{type: "stdio", command, args, env}`.
    Typed,
    /// Zed: `{source: "custom", enabled: true, command, args, env}`.
    Zed,
    /// Goose: `{name, enabled: true, type: "stdio", cmd, args, timeout, envs}`.
    Goose,
    /// OpenCode: `{type: "local", command: [...], enabled: true, environment}`.
    OpenCode,
    /// Copilot CLI: `{type: "local", command, args, env, tools: ["*"]}`.
    Copilot,
}

/// Servers that a shim offers to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimSelection<'a> {
    /// All enabled servers.
    All,
    /// The server with this name.
    Server(&'a str),
    /// The servers of the profile with this name.
    Profile(&'a str),
}

impl StartCommand {
    /// Creates the command that starts the shim for these servers.
    #[must_use]
    pub fn of_shim(shim: &Path, selection: ShimSelection<'_>) -> Self {
        let args: &[&str] = match selection {
            ShimSelection::All => &[],
            ShimSelection::Server(name) => &["--server", name],
            ShimSelection::Profile(name) => &["--profile", name],
        };
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { command: shim.display().to_string(), args, env: BTreeMap::new() }
    }

    /// Returns `true` if the command starts the shim, regardless of its directory.
    #[must_use]
    pub fn is_shim(&self) -> bool {
        Path::new(&self.command).file_stem().is_some_and(|name| name == SHIM)
    }

    /// Returns the servers that the shim's arguments select.
    #[must_use]
    pub fn shim_selection(&self) -> ShimSelection<'_> {
        let value_of_option = |option: &str| {
            let index = self.args.iter().position(|arg| arg == option)?;
            self.args.get(index + 1).map(String::as_str)
        };
        let profile = || value_of_option("--profile").map(ShimSelection::Profile);
        value_of_option("--server").map(ShimSelection::Server).or_else(profile).unwrap_or(ShimSelection::All)
    }
}

impl SettingsEntry {
    /// Parses an entry in any client's format, because users copy entries between clients.
    pub(crate) fn new(name: String, value: Value) -> Self {
        let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
        let url = text(&["url", "serverUrl", "httpUrl", "uri"]).map(ToOwned::to_owned);
        let is_set_to = |key: &str, state: bool| value.get(key).and_then(Value::as_bool) == Some(state);
        let is_disabled = is_set_to("disabled", true) || is_set_to("enabled", false);
        let launch = launch(&value);
        Self { name, launch, url, is_disabled, value }
    }
}

fn launch(value: &Value) -> Option<StartCommand> {
    let mut words = match value.get("command").or_else(|| value.get("cmd"))? {
        Value::Array(words) => words.iter().map(as_text).collect::<Option<Vec<_>>>()?,
        Value::String(command) => vec![command.clone()],
        // Older versions of Zed use `command: {path, args, env}`.
        Value::Object(inner) => {
            return launch(&json!({
                "command": inner.get("path")?, "args": inner.get("args"), "env": inner.get("env"),
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    }
    .into_iter();
    let command = words.next()?;
    let mut args: Vec<String> = words.collect();
    if let Some(extra_args) = value.get("args").and_then(Value::as_array) {
        args.extend(extra_args.iter().map(as_text).collect::<Option<Vec<_>>>()?);
    }
    let env = ["env", "envs", "environment"].iter().find_map(|key| value.get(key)?.as_object());
    let env = env.into_iter().flatten().map(|(key, value)| Some((key.clone(), as_text(value)?)));
    Some(StartCommand { command, args, env: env.collect::<Option<_>>()? })
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Shape {
    /// Returns the entry as a JSON value, with its fields in the client's usual order. Adds `name` as a field for
    /// clients that store entries in a list.
    pub(crate) fn write(self, name: Option<&str>, launch: &StartCommand) -> Value {
        let StartCommand { command, args, env } = launch;
        let mut fields: Vec<(&str, Value)> = match self {
            Self::Plain => vec![("command", json!(command)), ("args", json!(args))],
            Self::Typed => vec![("type", json!("stdio")), ("command", json!(command)), ("args", json!(args))],
            Self::Zed => vec![
                ("source", json!("custom")),
                ("enabled", json!(true)),
                ("command", json!(command)),
                ("args", json!(args)),
            ],
            Self::Goose => vec![
                ("enabled", json!(true)),
                ("type", json!("stdio")),
                ("cmd", json!(command)),
                ("args", json!(args)),
                ("timeout", json!(GOOSE_SECONDS)),
            ],
            Self::OpenCode => {
                let words: Vec<&String> = std::iter::once(command).chain(args).collect();
                vec![("type", json!("local")), ("command", json!(words)), ("enabled", json!(true))]
            }
            Self::Copilot => vec![
                ("type", json!("local")),
                ("command", json!(command)),
                ("args", json!(args)),
                ("tools", json!(["*"])),
            ],
        };
        let key = match self {
            Self::Plain | Self::Typed | Self::Zed | Self::Copilot => "env",
            Self::Goose => "envs",
            Self::OpenCode => "environment",
        };
        if let Some(name) = name {
            fields.insert(0, ("name", json!(name)));
        }
        if !env.is_empty() {
            fields.push((key, json!(env)));
        }
        Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
    }
}
