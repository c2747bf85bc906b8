//! `cargo xtask soak`: repeats randomized tests with other seeds. `cargo xtask test` runs each once, with a fixed
//! seed.

use super::runner;
use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::parts::APP;
use crate::process;
use crate::servers;
use crate::terminal::{heading, say};
use crate::totals::Totals;
use anyhow::{Context, bail};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Environment variable with the seed of a randomized test.
const SEED: &str = "IRONCURTAIN_TEST_SEED";

/// Timeout for one repetition.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Randomized tests that are repeated together.
struct Campaign {
    name: &'static str,
    /// Test program, and the prefix of the tests' names.
    tests: (&'static str, &'static str),
    /// Minimum number of repetitions, even if they take longer than requested.
    least: u32,
}

const CAMPAIGNS: [Campaign; 3] = [
    Campaign { name: "files", tests: ("sandbox", "served::random::"), least: 1 },
    // One repetition tests a million names.
    Campaign { name: "names", tests: ("sandbox", "served::escape::"), least: 1 },
    // The minimum is 300 kills.
    Campaign { name: "kills", tests: ("system", "run_kills::"), least: 15 },
];

/// Runs one campaign, or all of them in turn, for this number of minutes each.
pub(crate) fn run(name: Option<&str>, minutes: u32) -> anyhow::Result<()> {
    let chosen: Vec<&Campaign> =
        CAMPAIGNS.iter().filter(|campaign| name.is_none_or(|name| name == campaign.name)).collect();
    if chosen.is_empty() {
        let all: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
        bail!("unknown campaign; expected one of {}", all.join(", "));
    }
    machine::prepare(&[Purpose::Compile, Purpose::Sandbox, Purpose::CrateTests, Purpose::Tests])?;
    servers::install()?;
    heading("Building (some minutes the first time)")?;
    let built = cargo::build(&["--workspace", "--all-targets", "--exclude", APP])?;
    // Starts at a different seed on each run.
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    chosen.into_iter().try_for_each(|campaign| campaign.run(&built, first, minutes))
}

impl Campaign {
    /// Repeats the tests until the time has passed or one fails.
    fn run(&self, built: &[Built], first: u64, minutes: u32) -> anyhow::Result<()> {
        let Self { name, tests: (program, filter), least } = self;
        let tests = built.iter().find(|built| built.test && built.name == *program);
        let tests = tests.with_context(|| format!("test program `{program}` was not built"))?;
        heading(&format!("{name}, for {minutes} min"))?;
        let end = Instant::now() + Duration::from_secs(60) * minutes;
        let mut count = 0;
        while count < *least || Instant::now() < end {
            let seed = first + u64::from(count);
            let mut command = runner::program(tests, &tests.program);
            command.arg(filter).env(SEED, seed.to_string());
            let (mut totals, mut output) = (Totals::default(), Vec::new());
            let status = process::watch(&mut command, LIMIT, |line| {
                totals = Totals::of_program(line).unwrap_or(totals);
                output.push(line.to_owned());
                Ok(())
            });
            if !matches!(totals, Totals { failed: 0, passed: 1.. }) || !status?.success() {
                say(&output.join("\n"))?;
                bail!(
                    "failed with {SEED}={seed}; to reproduce, run `{}` with that variable set",
                    process::shown(&command)
                );
            }
            count += 1;
            say(&format!("{count:5}   seed {seed}   {totals}"))?;
        }
        Ok(())
    }
}
