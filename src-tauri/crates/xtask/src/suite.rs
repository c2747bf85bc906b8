//! `cargo xtask test`: runs all tests, the cheapest ones first.
//!
//! - A single build creates the programs and all tests, so nothing is compiled twice.
//! - Stages run one at a time, except the page tests in the web engine. These need only CPU time, which the sandbox
//!   tests leave idle.
//! - A stage that cannot run, and a test program that exits without a summary, count as failures. The last line
//!   therefore never reports success by mistake.

mod below;
mod examples;
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
use anyhow::{anyhow, bail};
use report::Report;
use runner::Part;
pub(crate) use soak::run as soak;
use std::thread;
use std::time::{Duration, Instant};

/// Runs all tests in the scope. The last line of the output contains the totals.
pub(crate) fn run(scope: Scope) -> anyhow::Result<()> {
    let mut course = Course::default();
    all(scope, &mut course)?;
    heading("Slowest tests")?;
    for row in course.report.slowest() {
        say(&row)?;
    }
    if !course.report.messages.is_empty() {
        heading("Messages of failed tests")?;
        for line in &course.report.messages {
            say(line)?;
        }
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
    course.stage("Examples", examples::run)?;
    course.stage("Page", || page::test(PageTests::Functions).map(Report::from))?;
    course.two_stages(
        ("Sandbox", || runner::run(&built, Part::Sandbox)),
        ("Page on display", || page::test(PageTests::Pages).map(Report::from)),
    )?;
    course.stage("System", || runner::run(&built, Part::System))?;
    course.stage("Memory", || runner::run(&built, Part::Memory))?;
    course.stage("Benchmarks", || benchmarks(&built).map(Report::from))?;
    course.stage("Packages", || package::test(&built).map(Report::from))?;
    if !below::is_here() {
        course.stage("Below /tmp", || below::run(&built))?;
    }
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

    /// Runs two stages of tests at once and adds their results.
    fn two_stages(
        &mut self,
        (name, act): (&str, impl FnOnce() -> anyhow::Result<Report>),
        (other, other_act): (&str, impl FnOnce() -> anyhow::Result<Report> + Send),
    ) -> anyhow::Result<()> {
        heading(&format!("{name}, {other}"))?;
        let (done, other_done) = thread::scope(|scope| {
            let running = scope.spawn(|| clocked(other_act));
            let done = clocked(act);
            (done, running.join())
        });
        let other_done = other_done.unwrap_or_else(|_| (Duration::ZERO, Err(anyhow!("`{other}` panicked"))));
        for (name, (took, done)) in [(name, done), (other, other_done)] {
            let report = self.note(name, took, done, |report: &Report| report.totals.to_string());
            self.report.add(report.unwrap_or_default());
        }
        Ok(())
    }

    fn timed<T>(
        &mut self,
        name: &str,
        act: impl FnOnce() -> anyhow::Result<T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<Option<T>> {
        heading(name)?;
        let (took, done) = clocked(act);
        Ok(self.note(name, took, done, outcome))
    }

    fn note<T>(
        &mut self,
        name: &str,
        took: Duration,
        done: anyhow::Result<T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        if let Err(problem) = &done {
            complain(&format!("{problem:#}"));
        }
        let done = done.ok();
        let row = done.as_ref().map_or_else(|| "could not run".to_owned(), outcome);
        if done.is_none() {
            self.report.totals.add(Totals::ONE_FAILURE);
        }
        self.rows.push(format!("{name:18}{:>12}   {row}", spoken(took)));
        done
    }
}

/// Runs a step. Returns its duration and result.
fn clocked<T>(act: impl FnOnce() -> anyhow::Result<T>) -> (Duration, anyhow::Result<T>) {
    let start = Instant::now();
    let done = act();
    (start.elapsed(), done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_two_stages_at_once_are_added() {
        let passed = |passed| Report::from(Totals { passed, failed: 0 });
        let mut course = Course::default();
        course.two_stages(("One", || Ok(passed(2))), ("Other", || Ok(passed(3)))).unwrap();
        assert_eq!(course.report.totals, Totals { passed: 5, failed: 0 });
        course.two_stages(("One", || bail!("no server")), ("Other", || Ok(passed(1)))).unwrap();
        course.two_stages(("One", || Ok(passed(1))), ("Other", || bail!("no display"))).unwrap();
        assert_eq!(course.report.totals, Totals { passed: 7, failed: 2 });
        assert_eq!(course.rows.len(), 6);
        let broken: Vec<&String> = course.rows.iter().filter(|row| row.ends_with("could not run")).collect();
        assert!(broken.len() == 2 && broken[0].starts_with("One") && broken[1].starts_with("Other"));
    }

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
