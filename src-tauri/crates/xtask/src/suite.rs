//! `cargo xtask test`: runs all tests, the cheapest ones first.
//!
//! - A single build creates the programs and all tests, so nothing is compiled twice.
//! - Stages run one at a time, except where one of them leaves processors idle. Such stages run in two lanes. The display
//!   tests run alone, because they depend on how quickly the screen follows a user's input.
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
use below::CheckoutCopy;
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
    course.lanes([
        vec![Stage::new("Sandbox", || runner::run(&built, Part::Sandbox))],
        vec![Stage::new("Page on display", || page::test(PageTests::Pages).map(Report::from))],
    ])?;
    let copy = match below::is_here() {
        false => course.prepare("Copy below /tmp", || CheckoutCopy::create(&built))?,
        true => None,
    };
    let mut others = vec![
        Stage::new("Memory", || runner::run(&built, Part::Memory)),
        Stage::new("Benchmarks", || benchmarks(&built).map(Report::from)),
        Stage::new("Packages", || package::test(&built).map(Report::from)),
    ];
    if let Some(copy) = &copy {
        others.push(Stage::new("Below /tmp", || copy.test()));
    }
    course.lanes([vec![Stage::new("System", || runner::run(&built, Part::System))], others])?;
    drop(copy);
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

    /// Runs both lanes at once, the stages of each lane in order, and adds all results.
    fn lanes(&mut self, lanes: [Vec<Stage<'_>>; 2]) -> anyhow::Result<()> {
        let names: Vec<&str> = lanes.iter().flatten().map(|stage| stage.name).collect();
        heading(&names.join(", "))?;
        let names = lanes.each_ref().map(|lane| lane.iter().map(|stage| stage.name).collect::<Vec<_>>());
        let done = thread::scope(|scope| {
            let [one, other] =
                lanes.map(|lane| scope.spawn(|| lane.into_iter().map(Stage::run).collect::<Vec<_>>()));
            [one.join(), other.join()]
        });
        for (names, lane) in names.iter().zip(done) {
            let mut lane = lane.unwrap_or_default().into_iter();
            for name in names {
                let panicked = || (Duration::ZERO, Err(anyhow!("`{name}` or a stage before it panicked")));
                let (took, done) = lane.next().unwrap_or_else(panicked);
                let report = self.note(name, took, done, |report: &Report| report.totals.to_string());
                self.report.add(report.unwrap_or_default());
            }
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

/// A stage of tests that can run in a lane.
struct Stage<'a> {
    name: &'static str,
    act: Box<dyn FnOnce() -> anyhow::Result<Report> + Send + 'a>,
}

impl<'a> Stage<'a> {
    fn new(name: &'static str, act: impl FnOnce() -> anyhow::Result<Report> + Send + 'a) -> Self {
        Self { name, act: Box::new(act) }
    }

    fn run(self) -> (Duration, anyhow::Result<Report>) {
        clocked(self.act)
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
    fn results_of_all_lanes_are_added_in_order() {
        let passes = |name, passed| Stage::new(name, move || Ok(Report::from(Totals { passed, failed: 0 })));
        let mut course = Course::default();
        course.lanes([vec![passes("One", 2), passes("Two", 4)], vec![passes("Other", 3)]]).unwrap();
        assert_eq!(course.report.totals, Totals { passed: 9, failed: 0 });
        let fails = Stage::new("Broken", || bail!("no server"));
        course.lanes([vec![fails, passes("Two", 1)], vec![passes("Other", 1)]]).unwrap();
        assert_eq!(course.report.totals, Totals { passed: 11, failed: 1 });
        let panics = Stage::new("Panics", || panic!("a defect of the runner"));
        course.lanes([vec![passes("One", 1)], vec![panics, passes("Never", 7)]]).unwrap();
        assert_eq!(course.report.totals, Totals { passed: 12, failed: 3 });
        let names = course.rows.iter().map(|row| row.split_whitespace().next().unwrap_or_default());
        let order = ["One", "Two", "Other", "Broken", "Two", "Other", "One", "Panics", "Never"];
        assert_eq!(names.collect::<Vec<_>>(), order);
        assert_eq!(course.rows.iter().filter(|row| row.ends_with("could not run")).count(), 3);
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
