//! `cargo xtask test`: runs all tests, the cheapest ones first.
//!
//! - A single build creates the programs and all tests, so nothing is compiled twice.
//! - Stages run one at a time. Two at once would not be quicker: display tests poll, and use all the processor time that
//!   others leave.
//! - A stage that cannot run, and a test program that exits without a summary, count as failures. The last line
//!   therefore never reports success by mistake.

mod below;
mod report;
mod runner;
mod soak;

use crate::arguments::{Measuring, Scope};
use crate::bench;
use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::package;
use crate::page::{self, PageTests};
use crate::parts::APP;
use crate::servers;
use crate::terminal::{complain, heading, say, spoken};
use crate::totals::Totals;
use anyhow::bail;
use report::Report;
use runner::Part;
pub(crate) use soak::run as soak;
use std::time::{Duration, Instant};

/// Runs all tests in the scope. The last line of the output contains the totals.
pub(crate) fn run(scope: Scope) -> anyhow::Result<()> {
    let mut course = Course::default();
    all(scope, &mut course)?;
    heading("Slowest tests")?;
    for row in course.report.slowest() {
        say(&row)?;
    }
    heading("Result")?;
    for row in &course.rows {
        say(row)?;
    }
    let totals = course.report.totals;
    say(&totals.to_string())?;
    match totals {
        Totals { failed: 0, passed: 1.. } => Ok(()),
        Totals { failed: 0, passed: 0 } => bail!("no tests were run"),
        Totals { .. } => bail!("some tests failed"),
    }
}

/// Runs the stages. After a failure, the later stages still run if their tests were built.
fn all(scope: Scope, course: &mut Course) -> anyhow::Result<()> {
    let purposes: &[Purpose] = match scope {
        Scope::Everything => &[
            Purpose::Compile,
            Purpose::Sandbox,
            Purpose::CrateTests,
            Purpose::Tests,
            Purpose::App,
            Purpose::DisplayTests,
        ],
        Scope::Fast => &[Purpose::Compile, Purpose::Sandbox, Purpose::CrateTests],
    };
    let mut ready = course.prepare("System packages", || machine::prepare(purposes))?.is_some();
    if scope == Scope::Everything {
        ready = ready && course.prepare("Servers", servers::install)?.is_some();
    }
    if !ready {
        return Ok(());
    }
    let Some(built) = course.prepare("Build", || build(scope))? else { return Ok(()) };
    course.stage("Crates", || runner::run(&built, Part::Crates))?;
    if scope == Scope::Fast {
        return Ok(());
    }
    course.stage("Page", || page::test(PageTests::Functions).map(Report::from))?;
    course.stage("Sandbox", || runner::run(&built, Part::Sandbox))?;
    course.stage("System", || runner::run(&built, Part::System))?;
    course.stage("Memory", || runner::run(&built, Part::Memory))?;
    course.stage("Benchmarks", || benchmarks(&built).map(Report::from))?;
    course.stage("Packages", || package::test(&built).map(Report::from))?;
    if !below::is_here() {
        course.stage("Below /tmp", || below::run(&built))?;
    }
    course.stage("Page on display", || page::test(PageTests::Pages).map(Report::from))?;
    course.stage("Display", || runner::run(&built, Part::Display))
}

fn build(scope: Scope) -> anyhow::Result<Vec<Built>> {
    let everything = ["--workspace", "--all-targets"];
    match scope {
        Scope::Everything => cargo::build(&everything),
        Scope::Fast => cargo::build(&[everything.as_slice(), &["--exclude", APP]].concat()),
    }
}

/// Runs each benchmark once to check that it works.
fn benchmarks(built: &[Built]) -> anyhow::Result<Totals> {
    say(&bench::tables(built, Measuring { with_srt: true, smoke: true, write: false })?)?;
    Ok(Totals::ONE_SUCCESS)
}

/// Results of the stages so far.
#[derive(Default)]
struct Course {
    rows: Vec<String>,
    report: Report,
}

impl Course {
    /// Runs a step that later stages depend on. Returns `None` if it failed.
    fn prepare<T>(
        &mut self,
        name: &str,
        act: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        self.timed(name, act, |_| "ready".to_owned())
    }

    /// Runs a stage of tests and adds its results.
    fn stage(&mut self, name: &str, act: impl FnOnce() -> anyhow::Result<Report>) -> anyhow::Result<()> {
        let report = self.timed(name, act, |report| report.totals.to_string())?;
        self.report.add(report.unwrap_or_default());
        Ok(())
    }

    fn timed<T>(
        &mut self,
        name: &str,
        act: impl FnOnce() -> anyhow::Result<T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<Option<T>> {
        heading(name)?;
        let start = Instant::now();
        let done = act();
        if let Err(problem) = &done {
            complain(&format!("{problem:#}"));
        }
        Ok(self.note(name, start.elapsed(), done, outcome))
    }

    fn note<T>(
        &mut self,
        name: &str,
        took: Duration,
        done: anyhow::Result<T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let done = done.ok();
        let row = done.as_ref().map_or_else(|| "could not run".to_owned(), outcome);
        if done.is_none() {
            self.report.totals.add(Totals::ONE_FAILURE);
        }
        self.rows.push(format!("{name:18}{:>12}   {row}", spoken(took)));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_that_cannot_run_is_a_failure() {
        let mut course = Course::default();
        let fine = course.note("Fine", Duration::from_millis(1_200), Ok(3), |n| format!("{n} things"));
        let broken = course.note("Broken", Duration::ZERO, bail_out(), |n| format!("{n} things"));
        assert_eq!((fine, broken), (Some(3), None));
        assert_eq!(course.report.totals, Totals::ONE_FAILURE);
        assert_eq!(
            course.rows,
            ["Fine                     1.2 s   3 things", "Broken                   0.0 s   could not run"]
        );
    }

    fn bail_out() -> anyhow::Result<u64> {
        bail!("no display")
    }
}
