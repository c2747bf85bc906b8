//! `audit export`: entries as they are on record, for other programs.
//!
//! - What a log's line leaves out because another line says it is filled in, so each is complete by itself.
//! - In a table, nothing that an agent wrote begins as a formula does.

use crate::arguments::{ExportFormat, FilterOptions};
use crate::audit::{filter, unread};
use crate::policy::since;
use crate::screen::{Screen, Unread};
use crate::sheet::{Sheet, counted};
use anyhow::Context;
use ironcurtain_audit::{self as audit, Entry};
use ironcurtain_daemon::Home;
use ironcurtain_daemon::consent::visible;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The columns of a table: of an entry's fields, and how they are called in the log.
const COLUMNS: [&str; 18] = [
    "seq",
    "timestamp",
    "event",
    "session",
    "client",
    "requestId",
    "serverName",
    "toolName",
    "arguments",
    "status",
    "rule",
    "reason",
    "escalationResult",
    "result",
    "durationMs",
    "sandboxed",
    "paths",
    "summary",
];

/// Writes the entries that match, oldest first.
pub fn export(
    of: FilterOptions,
    format: ExportFormat,
    output: Option<&Path>,
    screen: Screen,
) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let filter = filter(of)?;
    let entries = audit::all(&home.audit(), u64::MAX).with_context(|| unread(&home))?;
    let matching = entries.filter(|entry| entry.as_ref().map_or(true, |entry| filter.takes(entry)));
    let Some(path) = output else {
        let out = io::stdout();
        // On a terminal nothing hides.
        let shown = out.is_terminal();
        return write(matching, format, BufWriter::new(out.lock()), shown).map(drop);
    };
    // What is on record is the person's alone.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("`{}` cannot be made", path.display()))?;
    let count = write(matching, format, BufWriter::new(&file), false)?;
    file.sync_all()?;
    let told = format!("{} written to {}", counted(count, "line"), path.display());
    screen.show(&[told].into_iter().collect::<Sheet>(), &json!({ "entries": count, "output": path }))
}

fn write(
    entries: impl Iterator<Item = io::Result<Entry>>,
    format: ExportFormat,
    mut out: impl Write,
    shown: bool,
) -> anyhow::Result<usize> {
    let mut line = |text: String| {
        let text = if shown { visible::line(&text) } else { text };
        writeln!(out, "{text}").map_err(gone)
    };
    if format == ExportFormat::Csv {
        line(COLUMNS.join(","))?;
    }
    let mut count = 0;
    for entry in entries {
        let entry = entry.context("the audit log cannot be read")?;
        line(match format {
            ExportFormat::Jsonl => serde_json::to_string(&entry)?,
            ExportFormat::Csv => row(&serde_json::to_value(&entry)?),
        })?;
        count += 1;
    }
    out.flush().map_err(gone)?;
    Ok(count)
}

/// The end of a command whose output nobody reads is quiet.
fn gone(problem: io::Error) -> anyhow::Error {
    if problem.kind() == io::ErrorKind::BrokenPipe { Unread.into() } else { problem.into() }
}

/// An entry as a line of a table.
fn row(entry: &Value) -> String {
    let cell = |column: &&str| {
        let value = match *column {
            "status" | "rule" | "reason" => entry.pointer(&format!("/policyDecision/{column}")),
            column => entry.get(column),
        };
        match (*column, value) {
            (_, None) => String::new(),
            ("timestamp", Some(time)) => since::words(time.as_u64().unwrap_or_default()),
            ("paths", Some(Value::Array(paths))) => {
                quoted(&paths.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
            }
            (_, Some(Value::String(text))) => quoted(text),
            (_, Some(value)) => quoted(&value.to_string()),
        }
    };
    COLUMNS.iter().map(cell).collect::<Vec<_>>().join(",")
}

/// A text as a cell. One that a spreadsheet would take for a formula begins with an apostrophe.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b \"c\"\nd"), "\"a,b \"\"c\"\"\nd\"");
        assert_eq!(quoted("=HYPERLINK(1,2)"), "\"'=HYPERLINK(1,2)\"");
    }
}
