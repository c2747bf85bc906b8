//! Running test programs: all at once by nextest where it is installed, one after the other where it is not.

use crate::arguments::Scope;
use crate::cargo::{self, Built};
use crate::parts::{APP, DAEMON};
use crate::process;
use crate::terminal::{complain, say};
use crate::totals::Totals;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longer than any part takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Which tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those of one crate each.
    Crates,
    /// The whole system, headless.
    System,
    /// The app, on displays that the tests bring with them.
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
    anyhow::ensure!(totals != Totals::default(), "there is no test to run");
    Ok(totals)
}

/// A test program that takes signals as if it was started from a terminal: in the background a shell has some of them ignored,
/// which is handed on, and what the tests start could not be told by them to end. Attacks that use up what a user may have run
/// one after the other.
pub(super) fn program(tests: &Built, path: &Path) -> Command {
    let mut program = Command::new("env");
    program.arg("--default-signal").arg(path);
    if tests.name == "escape" {
        program.arg("--test-threads=1");
    }
    program
}

/// One test program, or nextest: its last sum, for a failed test may have printed another. Ending badly without having
/// said so is a failure too.
pub(super) fn one(command: &mut Command, sum: fn(&str) -> Option<Totals>) -> Totals {
    let mut totals = None;
    let ended = process::watch(command, LIMIT, |line| {
        totals = sum(line).or(totals);
        say(line)
    });
    let mut totals = totals.unwrap_or_default();
    let problem = match ended {
        Ok(status) if status.success() || totals.failed > 0 => return totals,
        Ok(status) => format!("`{}` ended with {status}", process::shown(command)),
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

    /// The same in the words of nextest.
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
