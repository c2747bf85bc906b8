//! Runs test programs, each in its own process with a time limit, and several at once.

use super::report::{Messages, Report, TestTime};
use crate::cargo::Built;
use crate::process;
use crate::terminal::{complain, say};
use crate::totals::Totals;
use anyhow::bail;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Timeout for a test program, ample even on a slow machine.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Number of unit test programs to run at once. Many of their tests wait for a timer, which leaves processors idle.
const AT_ONCE: usize = 4;

/// Test program whose tests run one at a time, because they exhaust the user's resource limits.
const SEQUENTIAL: &str = "escape";

/// Test program whose temporary files are kept in memory if possible. On disk, creating and deleting them takes most of
/// the time.
const IN_MEMORY: &str = "escape";

/// Script that runs its arguments with an empty in-memory file system mounted over the directory for temporary files.
const WITH_MEMORY: &str = "mount -t tmpfs -o mode=1777 tmpfs /var/tmp && exec \"$@\"";

/// Test programs whose tests start sandboxes, use servers from npm and PyPI, or fill disks.
const WITH_SANDBOX: [&str; 4] = ["autostart", "escape", "sandbox", "suite"];

/// Module of the system tests that measures the memory of its own process. It runs alone, because concurrent tests
/// would change the result.
const UNDISTURBED: &str = "memory::";

/// A group of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tests of a single crate that need no sandbox or display.
    Crates,
    /// Tests that start sandboxes, except those of the whole system.
    Sandbox,
    /// Tests of the whole system, without a display.
    System,
    /// Tests of the whole system that measure memory.
    Memory,
    /// Tests of the app, on displays that they start themselves.
    Display,
}

/// Runs the tests of a part.
pub(crate) fn run(built: &[Built], part: Part) -> anyhow::Result<Report> {
    let mut programs: Vec<&Built> = built.iter().filter(|b| b.test && part.has(b)).collect();
    programs.sort_by_key(|tests| (&tests.package, &tests.name));
    let at_once = if part == Part::Crates { AT_ONCE } else { 1 };
    let report = run_all(&programs, at_once, |tests| {
        let mut program = program(tests, &tests.program);
        match part {
            Part::System => program.args(["--skip", UNDISTURBED, &format!("--test-threads={}", threads())]),
            Part::Memory => program.args([UNDISTURBED, "--test-threads=1"]),
            // Without a graphics card, drawing on a test's display takes a whole core. Each test draws two thirds of the
            // time.
            Part::Display => program.arg(format!("--test-threads={}", processors() + 1)),
            Part::Crates | Part::Sandbox => &mut program,
        };
        program
    });
    anyhow::ensure!(report.totals != Totals::default(), "there is no test to run");
    Ok(report)
}

/// Runs test programs, `at_once` at a time. Prints a program's output when it exits or, if only one runs at a time,
/// each test's result immediately.
pub(super) fn run_all(
    programs: &[&Built],
    at_once: usize,
    command: impl Fn(&Built) -> Command + Sync,
) -> Report {
    let report = Mutex::new(Report::default());
    let queue = Mutex::new(programs.iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next().copied());
    let work = || {
        while let Some(tests) = next() {
            run_one(tests, command(tests), at_once == 1, &report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(programs.len()) {
            scope.spawn(work);
        }
    });
    report.into_inner().unwrap_or_default()
}

fn run_one(tests: &Built, mut command: Command, prints_at_once: bool, report: &Mutex<Report>) {
    let title = format!("\n-- {} of {}", tests.name, tests.package.file_name().unwrap_or_default().display());
    let mut lines = vec![title];
    let mut one = Report::default();
    let ended = one.watch(&mut command, LIMIT, |line| {
        if prints_at_once && TestTime::of_program(line).is_some() {
            return say(line);
        }
        lines.push(line.to_owned());
        Ok(())
    });
    let Ok(mut report) = report.lock() else { return };
    // Prints all lines at once, because other stages print too. The result is kept even if standard output is closed.
    let _ = say(&lines.join("\n"));
    if let Err(problem) = ended {
        complain(&format!("{problem:#}"));
    }
    report.add(one);
}

/// Returns the command for running a test program.
///
/// Resets signals to their default actions, as for a program started on a terminal. A shell makes its background jobs
/// ignore some signals, and children that inherit this could not be terminated by tests. Also sets the variable that
/// makes the test harness print each test's duration.
pub(super) fn program(tests: &Built, path: &Path) -> Command {
    let mut program = if tests.name == IN_MEMORY && is_mount_permitted() {
        let mut program = in_memory();
        program.arg("env");
        program
    } else {
        Command::new("env")
    };
    program.args(["--default-signal", "RUSTC_BOOTSTRAP=1"]).arg(path).current_dir(&tests.package);
    program.args(["-Zunstable-options", "--report-time"]);
    if tests.name == SEQUENTIAL {
        program.arg("--test-threads=1");
    }
    program
}

/// Returns a command that runs its arguments in a new mount namespace, with temporary files in memory.
fn in_memory() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", WITH_MEMORY, "sh"]);
    command
}

/// Returns `true` if this user can mount file systems, as root usually can.
fn is_mount_permitted() -> bool {
    in_memory().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Report {
    /// Runs a test program and adds its results. Returns an error if the exit status contradicts the summary.
    fn watch(
        &mut self,
        command: &mut Command,
        limit: Duration,
        mut see: impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut totals = None;
        let mut messages = Messages::default();
        let ended = process::watch(command, limit, |line| {
            totals = Totals::of_program(line).or(totals);
            self.times.extend(TestTime::of_program(line));
            if messages.has(line) {
                self.messages.push(line.to_owned());
            }
            see(line)
        });
        self.totals.add(totals.unwrap_or_default());
        let agrees = totals
            .is_some_and(|totals| ended.as_ref().is_ok_and(|status| status.success() || totals.failed > 0));
        if agrees {
            return Ok(());
        }
        self.totals.add(Totals::ONE_FAILURE);
        let summary = totals.map_or("no summary".to_owned(), |totals| totals.to_string());
        bail!("`{}` ended with {} and {summary}", process::shown(command), ended?)
    }
}

/// Returns the number of tests to run at once, given that most of them wait for processes.
fn threads() -> usize {
    processors() * 2
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get)
}

impl Part {
    /// Returns `true` if the part includes tests of this program.
    fn has(self, tests: &Built) -> bool {
        let (system, display) = (tests.name == "system", tests.name == "desktop");
        let sandbox = WITH_SANDBOX.contains(&tests.name.as_str());
        match self {
            Self::Crates => !system && !display && !sandbox,
            Self::Sandbox => sandbox,
            Self::System | Self::Memory => system,
            Self::Display => display,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(script: &str) -> (Report, anyhow::Result<()>) {
        let mut report = Report::default();
        let ended =
            report.watch(Command::new("sh").args(["-c", script]), Duration::from_secs(60), |_| Ok(()));
        (report, ended)
    }

    #[test]
    fn last_summary_counts() {
        let sum = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let (report, ended) = watched(&format!("echo 'test a::b ... ok <0.250s>'; echo '{sum}'"));
        ended.unwrap();
        assert_eq!(report.totals, Totals { passed: 2, failed: 0 });
        assert_eq!(report.times, [TestTime { seconds: 0.25, name: "a::b".to_owned() }]);
    }

    #[test]
    fn program_that_exits_without_a_summary_is_a_failure() {
        for status in ["101", "0"] {
            let (report, ended) = watched(&format!("exit {status}"));
            assert_eq!(report.totals, Totals::ONE_FAILURE);
            let problem = ended.unwrap_err().to_string();
            assert!(problem.contains(&format!("exit status: {status} and no summary")), "{problem}");
        }
    }

    #[test]
    fn exit_status_that_contradicts_the_summary_is_a_failure() {
        let (report, ended) = watched(
            "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'; exit 1",
        );
        assert_eq!(report.totals, Totals { passed: 2, failed: 1 });
        ended.unwrap_err();
    }
}
