//! Why a command did not do what it was to do: a sentence on standard error and, with `--json`, an object on standard
//! output besides.

use crate::screen::{Screen, Unread};
use crate::sheet::Sheet;
use clap::error::{ContextKind, ContextValue};
use ironcurtain_config::ConfigError;
use ironcurtain_policy::{LoadError, SourceLocation};
use ironcurtain_protocol::ErrorCode;
use ironcurtain_visible as visible;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit status of a command whose output nobody reads: as if the signal for that had ended it.
const UNREAD: u8 = 141;

/// The exit status of a command line that is not understood.
const USAGE: u8 = 2;

/// A refusal of the trusted process.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

/// Tells a problem.
pub fn tell(problem: &anyhow::Error, screen: Screen) -> ExitCode {
    if problem.is::<Unread>() {
        return ExitCode::from(UNREAD);
    }
    let mut sheet = Sheet::default();
    sheet.quoting(format_args!("ironcurtain: {}", sentence(problem)));
    told(&sheet, &json!({ "error": as_json(problem) }), screen, ExitCode::FAILURE)
}

/// Tells what is wrong with the command line, or what was asked to know about it.
pub fn tell_usage(problem: clap::Error, screen: Screen) -> ExitCode {
    if !problem.use_stderr() {
        return match problem.print() {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(UNREAD),
            Err(_) => ExitCode::FAILURE,
            Ok(()) => ExitCode::SUCCESS,
        };
    }
    let text = with_visible_arguments(problem).to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let error = json!({ "error": { "message": message } });
    told(&text.lines().collect(), &error, screen, ExitCode::from(USAGE))
}

/// The lines are clap's own, but for what was given.
fn with_visible_arguments(mut problem: clap::Error) -> clap::Error {
    let given: Vec<(ContextKind, String)> = problem
        .context()
        .filter_map(|(kind, value)| {
            let ContextValue::String(text) = value else { return None };
            Some((kind, visible::line(text)))
        })
        .collect();
    for (kind, text) in given {
        problem.insert(kind, ContextValue::String(text));
    }
    problem
}

fn told(sheet: &Sheet, error: &Value, screen: Screen, code: ExitCode) -> ExitCode {
    // Nobody is left to tell if this fails.
    let _ = io::stderr().write_all(sheet.as_str().as_bytes());
    if screen.is_for_programs() && screen.show(sheet, error).is_err_and(|e| e.is::<Unread>()) {
        return ExitCode::from(UNREAD);
    }
    code
}

/// The problem and its causes, those left out that it names itself.
fn sentence(problem: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in problem.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn as_json(problem: &anyhow::Error) -> Value {
    let mut fields = Map::new();
    fields.insert("message".to_owned(), sentence(problem).into());
    if let Some(Refused { code, .. }) = problem.downcast_ref() {
        fields.insert("code".to_owned(), json!(code));
    }
    fields.extend(problem.chain().find_map(place).unwrap_or_default());
    fields.into()
}

/// The place in a file where it is wrong, if an error says so.
fn place(error: &(dyn Error + 'static)) -> Option<Map<String, Value>> {
    let load = error.downcast_ref().map(place_of_load);
    load.or_else(|| error.downcast_ref().map(place_of_config))
}

/// The place where a file is wrong that was read for judging.
pub fn place_of_load(error: &LoadError) -> Map<String, Value> {
    let (place, more) = match error {
        LoadError::Shape { place, .. } => (place, json!({})),
        LoadError::Rule { place, rule, field, .. } => (place, json!({ "rule": rule, "field": field })),
        LoadError::Tool { place, server, tool, field, .. } => {
            (place, json!({ "server": server, "tool": tool, "field": field }))
        }
        LoadError::List { place, list, field, .. } => (place, json!({ "list": list, "field": field })),
    };
    let more = more.as_object().cloned().unwrap_or_default();
    file_and_line(place).into_iter().chain(more).collect()
}

fn place_of_config(error: &ConfigError) -> Map<String, Value> {
    match error {
        ConfigError::Io { path, .. } => {
            file_and_line(&SourceLocation { file: path.display().to_string(), line: None })
        }
        ConfigError::Invalid { place, .. } => file_and_line(place),
    }
}

fn file_and_line(place: &SourceLocation) -> Map<String, Value> {
    let file = ("file".to_owned(), place.file.as_str().into());
    let line = place.line.map(|line| ("line".to_owned(), line.into()));
    [file].into_iter().chain(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        let config = || ConfigError::Io { path: "/p".into(), source: missing() };
        let told = |problem: anyhow::Error| sentence(&problem);
        assert_eq!(told(config().into()), "`/p` cannot be read: there is no such file");
        let above = Err::<(), _>(missing()).context("`/p` cannot be used").unwrap_err();
        assert_eq!(told(above), "`/p` cannot be used: there is no such file");
        let snapshot = ironcurtain_daemon::SnapshotError::from(config()).into();
        let expected = json!({ "message": "`/p` cannot be read: there is no such file", "file": "/p" });
        assert_eq!(as_json(&snapshot), expected);
    }
}
