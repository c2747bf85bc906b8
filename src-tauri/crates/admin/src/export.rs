//! Exports audit entries for other programs.
//!
//! - Adds values that the log stores only once to every exported line so that each line is complete.
//! - INVARIANT: no CSV cell with text from an agent can be evaluated as a spreadsheet formula.

use ironcurtain_audit::{self as audit, Entry, Filter};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::time_of_day;
use serde_json::Value;
use std::io::{self, Write};

/// Columns of the CSV table, named after the fields in the log.
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

/// Format of exported entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogExportFormat {
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values.
    Table,
}

/// Error from exporting entries.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log could not be read.
    #[error("failed to read the audit log: {0}")]
    Log(io::Error),
    /// An entry could not be serialized.
    #[error("failed to serialize an entry: {0}")]
    Entry(#[from] serde_json::Error),
    /// The output could not be written.
    #[error("failed to write the export: {0}")]
    Write(io::Error),
}

/// Writes the matching entries in chronological order and returns their number. `line` transforms each line before it
/// is written.
///
/// # Errors
/// Returns an [`ExportError`] on failure. Some entries may already have been written.
pub fn export(
    home: &Home,
    filter: &Filter,
    format: LogExportFormat,
    mut out: impl Write,
    line: impl Fn(String) -> String,
) -> Result<usize, ExportError> {
    let mut write = |text: String| writeln!(out, "{}", line(text)).map_err(ExportError::Write);
    if format == LogExportFormat::Table {
        write(COLUMNS.join(","))?;
    }
    let mut count = 0;
    for entry in audit::all(&home.audit(), u64::MAX).map_err(ExportError::Log)? {
        let entry = entry.map_err(ExportError::Log)?;
        if filter.matches(&entry) {
            write(format_entry(&entry, format)?)?;
            count += 1;
        }
    }
    out.flush().map_err(ExportError::Write)?;
    Ok(count)
}

fn format_entry(entry: &Entry, format: LogExportFormat) -> Result<String, serde_json::Error> {
    match format {
        LogExportFormat::JsonLines => serde_json::to_string(entry),
        LogExportFormat::Table => Ok(table_row(&serde_json::to_value(entry)?)),
    }
}

/// Formats an entry as a CSV row.
fn table_row(entry: &Value) -> String {
    let cell = |column: &&str| {
        let value = match *column {
            "status" | "rule" | "reason" => entry.pointer(&format!("/policyDecision/{column}")),
            column => entry.get(column),
        };
        match (*column, value) {
            (_, None) => String::new(),
            ("timestamp", Some(time)) => time_of_day(time.as_u64().unwrap_or_default()),
            ("paths", Some(Value::Array(paths))) => {
                csv_field(&paths.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
            }
            (_, Some(Value::String(text))) => csv_field(text),
            (_, Some(value)) => csv_field(&value.to_string()),
        }
    };
    COLUMNS.iter().map(cell).collect::<Vec<_>>().join(",")
}

/// Formats text as a CSV cell. Text that a spreadsheet would evaluate as a formula gets a leading apostrophe.
fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_one_cell_and_is_never_a_formula() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,b \"c\"\nd"), "\"a,b \"\"c\"\"\nd\"");
        assert_eq!(csv_field("=HYPERLINK(1,2)"), "\"'=HYPERLINK(1,2)\"");
    }
}
