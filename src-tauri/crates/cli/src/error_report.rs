//! Reports errors as text on standard error and, with `--json`, as an object on standard output.

use crate::screen::{OutputClosed, Screen};
use crate::text_lines::TextLines;
use clap::error::{ContextKind, ContextValue};
use ironcurtain_config::ConfigError;
use ironcurtain_policy::{LoadError, SourceLocation};
use ironcurtain_protocol::ErrorCode;
use ironcurtain_visible as visible;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit status if standard output was closed, as for a process killed by SIGPIPE.
const OUTPUT_CLOSED: u8 = 141;

/// Exit status for an invalid command line.
const USAGE: u8 = 2;

/// Error if the trusted process refuses a request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub code: ErrorCode,
    pub message: String,
}

/// Reports an error and returns the exit status.
pub fn report(problem: &anyhow::Error, screen: Screen) -> ExitCode {
    if problem.is::<OutputClosed>() {
        return ExitCode::from(OUTPUT_CLOSED);
    }
    let mut out = TextLines::default();
    out.quoting(format_args!("ironcurtain: {}", sentence(problem)));
    print_error(&out, &json!({ "error": as_json(problem) }), screen, ExitCode::FAILURE)
}

/// Reports an invalid command line, or prints the requested help or version.
pub fn report_usage(problem: clap::Error, screen: Screen) -> ExitCode {
    if !problem.use_stderr() {
        return match problem.print() {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(OUTPUT_CLOSED),
            Err(_) => ExitCode::FAILURE,
            Ok(()) => ExitCode::SUCCESS,
        };
    }
    let text = with_visible_arguments(problem).to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let error = json!({ "error": { "message": message } });
    print_error(&text.lines().collect(), &error, screen, ExitCode::from(USAGE))
}

/// Escapes the user's arguments in an error message from clap.
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

fn print_error(out: &TextLines, error: &Value, screen: Screen, code: ExitCode) -> ExitCode {
    // A failure to write to standard error cannot be reported.
    let _ = io::stderr().write_all(out.as_str().as_bytes());
    if screen.is_json() && screen.show(out, error).is_err_and(|e| e.is::<OutputClosed>()) {
        return ExitCode::from(OUTPUT_CLOSED);
    }
    code
}

/// Joins an error and its causes, omitting causes that the message already contains.
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
    fields.extend(problem.chain().find_map(location).unwrap_or_default());
    fields.into()
}

/// Returns the file and line that an error is about, or `None` if it is not about a file.
fn location(error: &(dyn Error + 'static)) -> Option<Map<String, Value>> {
    let load = error.downcast_ref().map(location_of_load_error);
    load.or_else(|| error.downcast_ref().map(location_of_config_error))
}

/// Returns the file and line of an error in a policy, annotations or list file, as JSON.
pub fn location_of_load_error(error: &LoadError) -> Map<String, Value> {
    let (location, more) = match error {
        LoadError::Shape { location, .. } => (location, json!({})),
        LoadError::Rule { location, rule, field, .. } => (location, json!({ "rule": rule, "field": field })),
        LoadError::Tool { location, server, tool, field, .. } => {
            (location, json!({ "server": server, "tool": tool, "field": field }))
        }
        LoadError::List { location, list, field, .. } => (location, json!({ "list": list, "field": field })),
    };
    let more = more.as_object().cloned().unwrap_or_default();
    file_and_line(location).into_iter().chain(more).collect()
}

fn location_of_config_error(error: &ConfigError) -> Map<String, Value> {
    match error {
        ConfigError::Io { path, .. } => {
            file_and_line(&SourceLocation { file: path.display().to_string(), line: None })
        }
        ConfigError::Invalid { location, .. } => file_and_line(location),
        ConfigError::Managed(_) => Map::new(),
    }
}

fn file_and_line(location: &SourceLocation) -> Map<String, Value> {
    let file = ("file".to_owned(), location.file.as_str().into());
    let line = location.line.map(|line| ("line".to_owned(), line.into()));
    [file].into_iter().chain(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_printed_once() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the file does not exist");
        let config = || ConfigError::Io { path: "/p".into(), source: missing() };
        let text = |problem: anyhow::Error| sentence(&problem);
        assert_eq!(text(config().into()), "failed to read `/p`: the file does not exist");
        let above = Err::<(), _>(missing()).context("`/p` cannot be used").unwrap_err();
        assert_eq!(text(above), "`/p` cannot be used: the file does not exist");
        let snapshot = ironcurtain_config::SnapshotError::from(config()).into();
        let expected = json!({ "message": "failed to read `/p`: the file does not exist", "file": "/p" });
        assert_eq!(as_json(&snapshot), expected);
    }
}
