//! `audit export`: writes audit entries for other programs.

use crate::arguments::{ExportFormat, FilterOptions};
use crate::audit::{filter, unread};
use crate::lines::{TextLines, counted};
use crate::screen::{OutputClosed, Screen};
use anyhow::Context;
use ironcurtain_admin::export::{ExportError, ExportForm, export as write};
use ironcurtain_config::home::Home;
use ironcurtain_visible as visible;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the matching entries in chronological order.
pub fn export(
    of: FilterOptions,
    format: ExportFormat,
    output: Option<&Path>,
    screen: Screen,
) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let filter = filter(of)?;
    let form = match format {
        ExportFormat::Jsonl => ExportForm::JsonLines,
        ExportFormat::Csv => ExportForm::Table,
    };
    let Some(path) = output else {
        let out = io::stdout();
        // Escapes control characters only on a terminal, which would interpret them.
        let shown = out.is_terminal();
        let line = |text: String| if shown { visible::line(&text) } else { text };
        let written = write(&home, &filter, form, BufWriter::new(out.lock()), line);
        return written.map(drop).map_err(|problem| gone(problem, &home));
    };
    // Only the user can read the exported file, as with the log itself.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("failed to create `{}`", path.display()))?;
    let count = write(&home, &filter, form, BufWriter::new(&file), |line| line)
        .map_err(|problem| gone(problem, &home))?;
    file.sync_all()?;
    let told = format!("{} written to {}", counted(count, "line"), path.display());
    screen.show(&[told].into_iter().collect::<TextLines>(), &json!({ "entries": count, "output": path }))
}

/// Converts an export error. A closed pipe becomes [`OutputClosed`], which is not reported to the user.
fn gone(problem: ExportError, home: &Home) -> anyhow::Error {
    match problem {
        ExportError::Write(problem) if problem.kind() == io::ErrorKind::BrokenPipe => OutputClosed.into(),
        ExportError::Log(problem) => anyhow::Error::from(problem).context(unread(home)),
        problem @ (ExportError::Write(_) | ExportError::Entry(_)) => problem.into(),
    }
}
