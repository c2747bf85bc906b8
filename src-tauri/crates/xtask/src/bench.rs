//! `cargo xtask bench`: measures the overhead of IronCurtain and similar programs, in the same run on the same
//! machine.
//!
//! - A row that cannot be measured is an error. `cargo xtask test` measures each row once (`--smoke`), so broken
//!   benchmarks are noticed early.

use crate::arguments::Measuring;
use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::parts::{self, AUDIT, DAEMON, EXPORT, POLICY, SANDBOX};
use crate::process::{self, command};
use crate::terminal::{heading, say};
use crate::{programs, servers};
use anyhow::Context;
use std::process::{Command, Stdio};

/// Reference filesystem server to compare with, installed from npm.
const REFERENCE: &str = "target/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

/// Measures and prints the tables, and writes them to the documentation if requested.
pub(crate) fn run(measuring: Measuring) -> anyhow::Result<()> {
    let mut purposes = vec![Purpose::Compile, Purpose::Sandbox];
    if measuring.with_srt {
        purposes.push(Purpose::Tests);
    }
    machine::prepare(&purposes)?;
    if measuring.with_srt {
        servers::install()?;
    }
    let built = if measuring.smoke { build()? } else { build_for_release()? };
    heading("Measuring")?;
    let tables = tables(&built, measuring)?;
    say(&tables)?;
    if measuring.write {
        let overhead = format!("{ABOUT}{}\n{}", tables.trim_start(), where_measured());
        Page { overhead, ..Page::read()? }.write()?;
    }
    Ok(())
}

/// Simulates 10,000 desktops, and writes the table to the documentation if requested.
pub(crate) fn simulate_fleet(write: bool) -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Compile])?;
    heading("Building for release (some minutes the first time)")?;
    let built = cargo::build(&["--release", "--package", EXPORT, "--example", "fleet"])?;
    heading("Simulating (some minutes)")?;
    let table = measured(&mut Command::new(cargo::find(&built, "fleet")?))?;
    say(&table)?;
    if write {
        Page { fleet: format!("{FLEET}{ABOUT_FLEET}{table}"), ..Page::read()? }.write()?;
    }
    Ok(())
}

/// Replaces the app's measurements in the documentation.
pub(crate) fn write_of_desktop(figures: &str) -> anyhow::Result<()> {
    let app = format!("{DESKTOP}{ABOUT_DESKTOP}{}\n{}", figures.trim_start(), where_measured());
    Page { app, ..Page::read()? }.write()
}

/// Sections of the documentation page. Each one is measured separately.
struct Page {
    overhead: String,
    fleet: String,
    app: String,
}

impl Page {
    fn read() -> anyhow::Result<Self> {
        let page = std::fs::read_to_string(parts::root().join(PAGE)).context(PAGE)?;
        let (rest, app) = page.split_at(page.find(DESKTOP).unwrap_or(page.len()));
        let (overhead, fleet) = rest.split_at(rest.find(FLEET).unwrap_or(rest.len()));
        Ok(Self { overhead: overhead.to_owned(), fleet: fleet.to_owned(), app: app.to_owned() })
    }

    fn write(&self) -> anyhow::Result<()> {
        let Self { overhead, fleet, app } = self;
        std::fs::write(parts::root().join(PAGE), format!("{overhead}{fleet}{app}"))?;
        say(&format!("wrote {PAGE}"))
    }
}

/// Runs the built benchmark programs and returns their tables.
pub(crate) fn tables(built: &[Built], measuring: Measuring) -> anyhow::Result<String> {
    let program = |name: &str| -> anyhow::Result<Command> {
        let mut program = Command::new(cargo::find(built, name)?);
        program.args(measuring.smoke.then_some("--smoke"));
        Ok(program)
    };
    let srt = measuring.with_srt.then(|| parts::root().join("target/npm/node_modules/.bin/srt"));
    let mut sandbox = program("sandbox-bench")?;
    sandbox.arg(cargo::find(built, SANDBOX)?).args(&srt);
    let mut run = program("run-bench")?;
    run.args(&srt);
    let mut whole = program("bench")?;
    if measuring.with_srt {
        whole.arg("--reference").arg(parts::root().join(REFERENCE));
    }
    if measuring.smoke {
        say(&measured(&mut program("fleet")?)?)?;
    }
    let whole = measured(&mut whole)?;
    let judging = measured(&mut program("judge-bench")?)?;
    let record = measured(&mut program("record-bench")?)?;
    Ok(format!("{whole}{judging}{record}\n{}\n{}", measured(&mut sandbox)?, measured(&mut run)?))
}

/// Makes a debug build of the benchmarks and the measured programs.
fn build() -> anyhow::Result<Vec<Built>> {
    heading("Building (a minute or two the first time)")?;
    let examples = ["bench", "run-bench", "fleet", "sandbox-bench", "judge-bench", "record-bench"]
        .iter()
        .flat_map(|name| ["--example", name]);
    let targets: Vec<&str> = std::iter::once("--bins").chain(examples).collect();
    let packages = [DAEMON, EXPORT, SANDBOX, POLICY, AUDIT].iter().flat_map(|package| ["--package", package]);
    programs::build(&packages.collect::<Vec<_>>(), &targets)
}

/// Makes a release build. The policy benchmark is built separately, so that other crates do not enable features for
/// it.
fn build_for_release() -> anyhow::Result<Vec<Built>> {
    heading("Building for release (some minutes the first time)")?;
    let targets = ["--bins", "--example", "bench", "--example", "run-bench", "--example", "sandbox-bench"];
    let mut built = programs::build_for_release(&["--package", DAEMON, "--package", SANDBOX], &targets)?;
    built.extend(cargo::build(&["--release", "--package", POLICY, "--example", "judge-bench"])?);
    built.extend(cargo::build(&["--release", "--package", AUDIT, "--example", "record-bench"])?);
    Ok(built)
}

/// Runs a benchmark program and returns the table that it prints.
fn measured(program: &mut Command) -> anyhow::Result<String> {
    let output = program
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start the benchmark")?;
    anyhow::ensure!(output.status.success(), "`{}` failed: {}", process::shown(program), output.status);
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned() + "\n")
}

/// Documentation page of the benchmarks (`PAGE`), and the headings of its sections about a fleet and about the app.
const PAGE: &str = "docs/reference/benchmarks.md";
const FLEET: &str = "\n## A fleet\n";
const DESKTOP: &str = "\n## The app\n";

const ABOUT_FLEET: &str = "
`cargo xtask bench --fleet --write` simulates 10,000 desktops with one bundle server and one collector. They run the code of the
product; the network, the clock and the random numbers are simulated, so the figures are the same on every machine. All
desktops start in the same second. Each one downloads the bundle every 60 to 120 s (the default), records a call every 3
minutes on average, and exports its record, its metrics and its signed heads. Then both servers fail for an hour. The
simulation fails if a server gets more requests in a second than the bound, or if an entry is lost. `cargo xtask test`
simulates 200 desktops.

The bounds follow from the random pauses. Each pause is at least half as long as its maximum L, so D desktops make at most 2D/L
requests a second on average, even if all of them begin to wait in the same second. The bounds add the random variation that
is exceeded in one of 1,000,000,000 runs. Bytes include the HTTP heads, but not TLS.

";

const ABOUT_DESKTOP: &str = "
`cargo xtask bench --desktop --write` measures a release build on a virtual X display without a graphics card. Memory is the
proportional set size: private memory, and a share of memory used with others. The window and its page are separate
processes that exit when the window closes.

";

const ABOUT: &str = "\
# Benchmarks

`cargo xtask bench --with-srt --write` measures release builds of IronCurtain and of its peers in one run on one machine. Times
are never tested; `cargo xtask bench --smoke` (part of `cargo xtask test`) tests that every row can be computed. The judge's
time is from the fastest of 2,000 batches of 20 runs of the mix, because other programs disturbed that batch least.

The bare relay copies from pipe to pipe without parsing, which is the minimum cost of any process between client and server.
In the throughput rows, client, server and relay share the processors, and IronCurtain additionally judges, records and
sandboxes. Its cost is large compared with the built-in server, which needs about 12 us of the 44 us per call, and small
compared with the reference server in Node.js. A single call consists mostly of wake-ups, whose cost varies twofold between
runs on this virtual machine: a direct call took 57 to 136 us, and IronCurtain added 56 to 145 us.

The last table has ordinary commands in `ironcurtain run`: in its working folder, which is mounted, and in a folder that the
user allowed it to read, whose files IronCurtain serves. Figures are medians of five runs. Each run starts without cached files
of the served folder.

";

fn where_measured() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let kernel = process::answer(command("uname").arg("-r")).map(|k| k.trim().to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "Measured on {}, {cores} cores, kernel {}.\n",
        cpu.as_deref().unwrap_or("an unknown processor"),
        kernel.as_deref().unwrap_or("unknown")
    )
}
