//! Entries of the record as they are, for other programs.
//!
//! - What a log's line leaves out because another line says it is filled in, so each is complete by itself.
//! - In a table, nothing that an agent wrote begins as a formula does.

use ironcurtain_audit::{self as audit, Entry, Filter};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::time_of_day;
use serde_json::Value;
use std::io::{self, Write};

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

/// The form of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// A line of JSON for each entry.
    JsonLines,
    /// A table with commas.
    Table,
}

/// Why not everything was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log cannot be read.
    #[error("the audit log cannot be read: {0}")]
    Log(io::Error),
    /// An entry cannot be written as text.
    #[error("an entry cannot be written as text: {0}")]
    Entry(#[from] serde_json::Error),
    /// The file or the pipe does not take it.
    #[error("it cannot be written: {0}")]
    Write(io::Error),
}

/// Writes the entries that match, oldest first, each line as `line` has it; the answer is their number.
///
/// # Errors
/// [`ExportError`]: a part may be written.
pub fn export(
    home: &Home,
    filter: &Filter,
    form: ExportForm,
    mut out: impl Write,
    line: impl Fn(String) -> String,
) -> Result<usize, ExportError> {
    let mut write = |text: String| writeln!(out, "{}", line(text)).map_err(ExportError::Write);
    if form == ExportForm::Table {
        write(COLUMNS.join(","))?;
    }
    let mut count = 0;
    for entry in audit::all(&home.audit(), u64::MAX).map_err(ExportError::Log)? {
        let entry = entry.map_err(ExportError::Log)?;
        if filter.takes(&entry) {
            write(written(&entry, form)?)?;
            count += 1;
        }
    }
    out.flush().map_err(ExportError::Write)?;
    Ok(count)
}

fn written(entry: &Entry, form: ExportForm) -> Result<String, serde_json::Error> {
    match form {
        ExportForm::JsonLines => serde_json::to_string(entry),
        ExportForm::Table => Ok(row(&serde_json::to_value(entry)?)),
    }
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
            ("timestamp", Some(time)) => time_of_day(time.as_u64().unwrap_or_default()),
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
