//! `audit export`: writes audit entries for other programs.

use crate::arguments::{ExportFormat, FilterOptions};
use crate::audit::{filter, read_error};
use crate::screen::{OutputClosed, Screen};
use crate::text_lines::{TextLines, counted};
use anyhow::Context;
use ironcurtain_admin::export::{ExportError, LogExportFormat, export as write};
use ironcurtain_config::home::Home;
use ironcurtain_visible as visible;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the matching entries in chronological order.
pub fn export(
    options: FilterOptions,
    format: ExportFormat,
    output: Option<&Path>,
    screen: Screen,
) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let filter = filter(options)?;
    let layout = match format {
        ExportFormat::Jsonl => LogExportFormat::JsonLines,
        ExportFormat::Csv => LogExportFormat::Table,
    };
    let Some(path) = output else {
        let out = io::stdout();
        // Escapes control characters only on a terminal, which would interpret them.
        let is_terminal = out.is_terminal();
        let line = |text: String| if is_terminal { visible::line(&text) } else { text };
        let written = write(&home, &filter, layout, BufWriter::new(out.lock()), line);
        return written.map(drop).map_err(|problem| export_error(problem, &home));
    };
    // Only the user can read the exported file, as with the log itself.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("failed to create `{}`", path.display()))?;
    let count = write(&home, &filter, layout, BufWriter::new(&file), |line| line)
        .map_err(|problem| export_error(problem, &home))?;
    file.sync_all()?;
    let message = format!("{} written to {}", counted(count, "line"), path.display());
    screen.show(&[message].into_iter().collect::<TextLines>(), &json!({ "entries": count, "output": path }))
}

/// Converts an export error. A closed pipe becomes [`OutputClosed`], which is not reported to the user.
fn export_error(problem: ExportError, home: &Home) -> anyhow::Error {
    match problem {
        ExportError::Write(problem) if problem.kind() == io::ErrorKind::BrokenPipe => OutputClosed.into(),
        ExportError::Log(problem) => anyhow::Error::from(problem).context(read_error(home)),
        problem @ (ExportError::Write(_) | ExportError::Entry(_)) => problem.into(),
    }
}
