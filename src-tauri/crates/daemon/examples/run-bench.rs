//! Measures ordinary commands in `ironcurtain run`, and compares them with the same commands in other sandboxes and without
//! a sandbox. Prints a Markdown table. Run it with `cargo xtask bench`.
//!
//! `run-bench [--smoke] [SRT]`: SRT is the path of `srt`, if it is installed. `--smoke` takes each measurement once, with
//! few files.
//!
//! - Every sandbox is started through its command line, as a user does.
//! - Questions are allowed at once, for their folder if it is offered. The question about the served folder is not part of
//!   the times. `sandbox-bench` measures the time that a question takes.

#[path = "run-bench/columns.rs"]
mod columns;
#[path = "run-bench/project.rs"]
mod project;

use anyhow::Context;
use columns::{BenchHome, Column};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Answer, AnswerSlot, Consent, Lifetime, Question, Reach, WithdrawalReason};
use ironcurtain_daemon::{DaemonOptions, start};
use ironcurtain_protocol::Request;
use ironcurtain_testkit::measurements::time;
use ironcurtain_testkit::programs::{built, is_root};
use project::{BENCH_STEPS, Project, Step};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Number of repetitions.
struct Rounds {
    /// Starts of each sandbox.
    starts: usize,
    /// Runs of all commands in each sandbox.
    works: usize,
}

const MEASURED: Rounds = Rounds { starts: 20, works: 5 };
const SMOKE: Rounds = Rounds { starts: 1, works: 1 };

/// Goal of the start, beside no sandbox.
const START_GOAL: &str = "<= 30 ms more than without a sandbox";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_smoke = arguments.next_if_eq("--smoke").is_some();
    let (rounds, project) = if is_smoke { (SMOKE, Project::SMOKE) } else { (MEASURED, Project::MEASURED) };
    // Not in `/tmp`, because every sandbox has its own `/tmp`.
    let dir = tempfile::Builder::new().prefix("icrun").tempdir_in("/var/tmp")?;
    let base = dir.path().canonicalize()?;
    let home = Home::under(&base.join("ic"), &base.join("person"));
    home.prepare()?;
    // The highest limit, so that no question is denied automatically.
    let unlimited_questions = json!({ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 });
    std::fs::write(home.config.join("config.json"), unlimited_questions.to_string())?;
    project.create(&home.user_home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let options = DaemonOptions { home: home.clone(), programs: built(), allow_root: is_root() };
    let daemon = runtime.block_on(start(options, Arc::new(AllowFolders)))?;
    let scene = BenchHome::new(&base, &home.user_home, arguments.next())?;
    let table = table(&scene, &rounds)?;
    write!(std::io::stdout(), "{table}")?;
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
    Ok(())
}

fn table(scene: &BenchHome, rounds: &Rounds) -> anyhow::Result<String> {
    let columns = Column::all(scene);
    let mut page = String::from("| command |");
    columns.iter().try_for_each(|column| write!(page, " {} |", column.name()))?;
    write!(page, " goal |\n| --- |{} --- |\n| start to first byte |", " --- |".repeat(columns.len()))?;
    for column in &columns {
        let starts = (0..rounds.starts).map(|_| scene.first_byte(*column)).collect::<Result<Vec<_>, _>>()?;
        write!(page, " {} |", starts.into_iter().flatten().collect::<Durations>().median())?;
    }
    writeln!(page, " {START_GOAL} |")?;
    let mut figures = Vec::new();
    for column in &columns {
        let all = (0..rounds.works).map(|_| scene.work(*column)).collect::<Result<Vec<_>, _>>()?;
        figures.push(all);
    }
    for (at, Step { name, goal, .. }) in BENCH_STEPS.iter().enumerate() {
        write!(page, "| {name} |")?;
        for all in &figures {
            let one: Durations = all.iter().filter_map(|durations| durations.get(at)).copied().collect();
            write!(page, " {} |", one.median())?;
        }
        writeln!(page, " {goal} |")?;
    }
    Ok(page)
}

/// Durations of the same command.
struct Durations(Vec<Duration>);

impl FromIterator<Duration> for Durations {
    fn from_iter<I: IntoIterator<Item = Duration>>(all: I) -> Self {
        let mut all: Vec<Duration> = all.into_iter().collect();
        all.sort();
        Self(all)
    }
}

impl Durations {
    /// Returns the median as text, or nothing if the command was not measured.
    fn median(&self) -> String {
        self.0.get(self.0.len() / 2).map_or_else(String::new, |median| time(*median))
    }
}

/// Simulated user who allows every question at once, for the folder if it is offered, and for the session if possible.
struct AllowFolders;

impl Consent for AllowFolders {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        let offers = question.offers.iter().enumerate();
        let folder = offers.rev().find(|(_, offer)| offer.reach == Reach::Folders);
        let (offer, lifetimes) = match folder.or_else(|| question.offers.iter().enumerate().next()) {
            Some((at, offer)) => (at, offer.lifetimes.as_slice()),
            None => (0, [].as_slice()),
        };
        let stands = lifetimes.contains(&Lifetime::Session);
        slot.answer(Answer::Allow {
            offer,
            lifetime: if stands { Lifetime::Session } else { Lifetime::Once },
        });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}
}

/// Parses the output of the commands: a duration in microseconds on each line.
fn durations(output: &str) -> anyhow::Result<Vec<Duration>> {
    let micros = |line: &str| line.parse().with_context(|| format!("not a duration: {line}"));
    output.lines().map(|line| Ok(Duration::from_micros(micros(line)?))).collect()
}
