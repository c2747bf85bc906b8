//! Parses command lines from documentation. Pure.
//!
//! - Converts commands of other package runners to the `npx` or `uvx` command for the same package.

use super::addition_error::AdditionError;
use super::names::is_remote_address;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Programs that a documented command line can start with.
pub const COMMANDS: [&str; 18] = [
    "npx", "uvx", "npm", "pnpm", "yarn", "bun", "bunx", "uv", "pipx", "node", "deno", "python", "python3",
    "cmd", "docker", "podman", "nerdctl", "env",
];

/// Programs that start containers.
pub(super) const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Options of other package runners that suppress a prompt or select a runtime. The conversion drops them.
const RUNNER_OPTIONS: [&str; 4] = ["-y", "--yes", "--bun", "--"];

/// Splits a command line such as `env KEY=VALUE npx ...` into the variables that it sets and the command.
pub(super) fn with_assignments(words: &[String]) -> (Map<String, Value>, &[String]) {
    let mut rest = words.strip_prefix(&["env".to_owned()]).unwrap_or(words);
    let mut env = Map::new();
    while let [first, others @ ..] = rest
        && !others.is_empty()
        && let Some((name, value)) = first.split_once('=')
        && is_variable(name)
    {
        env.insert(name.to_owned(), json!(value));
        rest = others;
    }
    (env, rest)
}

/// Returns `true` if the text before a `=` is the name of an environment variable, unlike in `package==version`.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Returns `true` if the word is a command rather than a server name.
pub(super) fn is_command(word: &str) -> bool {
    COMMANDS.contains(&word) || (Path::new(word).is_absolute() && !is_remote_address(word))
}

/// Converts a command of another package runner to the `npx` or `uvx` command. Returns other commands unchanged.
pub(super) fn without_runner_options(words: &[String]) -> Vec<String> {
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    let (runner, rest) = match all.as_slice() {
        ["cmd", "/c" | "/C", rest @ ..] => return without_runner_options(&owned(rest)),
        ["bunx", rest @ ..]
        | ["bun", "x", rest @ ..]
        | ["pnpm" | "yarn", "dlx", rest @ ..]
        | ["npm", "exec", rest @ ..] => (["npx", "-y"].as_slice(), rest),
        ["uv", "tool", "run", rest @ ..] | ["pipx", "run", rest @ ..] => (["uvx"].as_slice(), rest),
        _ => return words.to_vec(),
    };
    let rest = rest.iter().skip_while(|word| RUNNER_OPTIONS.contains(word));
    runner.iter().chain(rest).map(|word| (*word).to_owned()).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Converts the command of an entry to the `npx` or `uvx` command for the same package.
///
/// # Errors
/// Returns [`AdditionError::Container`] if the command starts a container.
pub(super) fn normalized(mut entry: Map<String, Value>) -> Result<Map<String, Value>, AdditionError> {
    let Some(command) = entry.get("command").and_then(Value::as_str) else { return Ok(entry) };
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let args = args.map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>();
    // Arguments that are not strings are reported when the entry is parsed.
    let Some(args) = args else { return Ok(entry) };
    let words: Vec<String> = std::iter::once(command.to_owned()).chain(args).collect();
    let words = without_runner_options(&words);
    let program = words.first().map(String::as_str).unwrap_or_default();
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    if CONTAINERS.contains(&name) {
        return Err(AdditionError::Container(name.to_owned()));
    }
    let has_args = entry.contains_key("args") || words.len() > 1;
    entry.insert("command".to_owned(), json!(program));
    if has_args {
        entry.insert("args".to_owned(), json!(words.get(1..)));
    }
    Ok(entry)
}
