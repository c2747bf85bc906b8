//! Entries of clients' settings: what is started, in the shape that each client has for it.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The file name of our shim.
const SHIM: &str = "ironcurtain-shim";

/// The seconds that Goose gives a call: longer than a question waits.
const GOOSE_SECONDS: u64 = 300;

/// A program that is started for a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
}

/// One entry, as it is in a client's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsEntry {
    /// Its name.
    pub name: String,
    /// Its whole value.
    pub value: Value,
    /// The program that it starts, if it starts one.
    pub launch: Option<StartCommand>,
    /// The address that it connects to, if it does.
    pub url: Option<String>,
    /// The client does not use it.
    pub is_disabled: bool,
}

/// The shape of a client's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{command, args, env}`.
    Plain,
    /// The same, with `type: "stdio"` before it.
    Typed,
    /// Zed's: `{source: "custom", enabled: true, command, args, env}`.
    Zed,
    /// Goose's: `{name, enabled: true, type: "stdio", cmd, args, timeout, envs}`.
    Goose,
    /// OpenCode's: `{type: "local", command: [...], enabled: true, environment}`.
    OpenCode,
    /// The Copilot command line's: `{type: "local", command, args, env, tools: ["*"]}`.
    Copilot,
}

/// The servers that our shim gives a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimSelection<'a> {
    /// All of them.
    All,
    /// One.
    Server(&'a str),
    /// Those of a profile.
    Profile(&'a str),
}

impl StartCommand {
    /// Our shim, for these servers.
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

    /// Returns `true` if it is our shim, wherever that is.
    #[must_use]
    pub fn is_shim(&self) -> bool {
        Path::new(&self.command).file_stem().is_some_and(|name| name == SHIM)
    }

    /// The servers that our shim is told to give.
    #[must_use]
    pub fn shim_selection(&self) -> ShimSelection<'_> {
        let after = |option: &str| {
            let at = self.args.iter().position(|arg| arg == option)?;
            self.args.get(at + 1).map(String::as_str)
        };
        let profile = || after("--profile").map(ShimSelection::Profile);
        after("--server").map(ShimSelection::Server).or_else(profile).unwrap_or(ShimSelection::All)
    }
}

impl SettingsEntry {
    /// Takes every shape, since people write what another client takes.
    pub(crate) fn of(name: String, value: Value) -> Self {
        let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
        let url = text(&["url", "serverUrl", "httpUrl", "uri"]).map(ToOwned::to_owned);
        let is = |key: &str, state: bool| value.get(key).and_then(Value::as_bool) == Some(state);
        let is_disabled = is("disabled", true) || is("enabled", false);
        let launch = launch(&value);
        Self { name, launch, url, is_disabled, value }
    }
}

fn launch(value: &Value) -> Option<StartCommand> {
    let mut words = match value.get("command").or_else(|| value.get("cmd"))? {
        Value::Array(words) => words.iter().map(as_text).collect::<Option<Vec<_>>>()?,
        Value::String(command) => vec![command.clone()],
        // Zed once had `command: {path, args, env}`.
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
    if let Some(more) = value.get("args").and_then(Value::as_array) {
        args.extend(more.iter().map(as_text).collect::<Option<Vec<_>>>()?);
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
    /// The fields of an entry, in the order in which they are written; `name` is among them where it is no key.
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
