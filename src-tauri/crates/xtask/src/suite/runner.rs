//! Runs test programs: in parallel with nextest if installed, otherwise one after the other.

use crate::arguments::Scope;
use crate::cargo::{self, Built};
use crate::parts::{APP, DAEMON};
use crate::process;
use crate::terminal::{complain, say};
use crate::totals::Totals;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Timeout, longer than any part takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Selection of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tests of single crates.
    Crates,
    /// System tests without a display.
    System,
    /// Tests of the app, on private displays.
    Display,
}

/// Runs the tests of this part.
pub(crate) fn run(scope: Scope, built: &[Built], part: Part) -> anyhow::Result<Totals> {
    let totals = if process::answer(&mut cargo::command(&["nextest", "--version"])).is_some() {
        let mut nextest = cargo::command(&["nextest", "run", "--workspace", "--no-tests=fail"]);
        if scope == Scope::WithoutApp {
            nextest.args(["--exclude", APP]);
        }
        one(nextest.args(["-E", &part.filter()]), Totals::of_nextest)
    } else {
        let mut totals = Totals::default();
        let mut of_part: Vec<&Built> = built.iter().filter(|b| b.test && Part::of(b) == part).collect();
        of_part.sort_by_key(|tests| (&tests.package, &tests.name));
        for tests in of_part {
            say(&format!(
                "\n-- {} of {}",
                tests.name,
                tests.package.file_name().unwrap_or_default().display()
            ))?;
            totals.add(one(program(tests, &tests.program).current_dir(&tests.package), Totals::of_program));
        }
        totals
    };
    anyhow::ensure!(totals != Totals::default(), "no tests were run");
    Ok(totals)
}

/// Returns the command for a test program, with the signal handling of a terminal. A background shell ignores some signals,
/// which children inherit, and tests could not stop the programs that they start. Tests that exhaust a user's process limit run
/// sequentially.
pub(super) fn program(tests: &Built, path: &Path) -> Command {
    let mut program = Command::new("env");
    program.arg("--default-signal").arg(path);
    if tests.name == "escape" {
        program.arg("--test-threads=1");
    }
    program
}

/// Runs a test program or nextest, and returns its last totals, because a failed test may have printed others. A failed exit
/// without failed tests counts as a failure too.
pub(super) fn one(command: &mut Command, sum: fn(&str) -> Option<Totals>) -> Totals {
    let mut totals = None;
    let ended = process::watch(command, LIMIT, |line| {
        totals = sum(line).or(totals);
        say(line)
    });
    let mut totals = totals.unwrap_or_default();
    let problem = match ended {
        Ok(status) if status.success() || totals.failed > 0 => return totals,
        Ok(status) => format!("`{}` failed: {status}", process::shown(command)),
        Err(problem) => format!("{problem:#}"),
    };
    complain(&problem);
    totals.add(Totals::ONE_FAILURE);
    totals
}

impl Part {
    fn of(built: &Built) -> Self {
        let is = |package: &Path| built.package == package;
        match built.name.as_str() {
            "system" if is(&crate::parts::root().join("src-tauri/crates/daemon")) => Self::System,
            "desktop" if is(&crate::parts::root()) => Self::Display,
            _ => Self::Crates,
        }
    }

    /// Returns the filter expression for nextest.
    fn filter(self) -> String {
        let system = format!("binary_id({DAEMON}::system)");
        let display = format!("binary_id({APP}::desktop)");
        match self {
            Self::Crates => format!("not ({system} or {display})"),
            Self::System => system,
            Self::Display => display,
        }
    }
}
