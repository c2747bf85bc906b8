//! Runs the examples in the documentation comments.

use super::report::Report;
use crate::cargo;
use crate::process;
use crate::terminal::say;
use crate::totals::Totals;
use anyhow::ensure;
use std::time::Duration;

/// Timeout for all examples, ample even on a slow machine.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Runs the examples of all crates. The crates themselves are already built.
pub(super) fn run() -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut command = cargo::command(&["test", "--doc", "--workspace", "--no-fail-fast"]);
    let status = process::watch(&mut command, LIMIT, |line| {
        report.totals.add(Totals::of_program(line).unwrap_or_default());
        say(line)
    })?;
    let Totals { passed, failed } = report.totals;
    ensure!(passed > 0 && status.success() == (failed == 0), "`cargo test --doc` ended with {status}");
    Ok(report)
}
