//! The tasks that build something and run it.

use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::parts::{self, APP, DAEMON, HELPERS, POLICY};
use crate::process;
use crate::terminal::{heading, say};
use anyhow::Context;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts the app; where there is no display, tells the demo.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if !has_display() {
        say("There is no display here, so this is the demo; with one, the app starts.")?;
        return demo(arguments);
    }
    machine::prepare(&[Purpose::Compile, Purpose::Sandbox, Purpose::App])?;
    heading("Building the app (some minutes the first time)")?;
    let built = build(&["--package", APP], &["--bins"])?;
    let mut app = Command::new(cargo::find(&built, APP)?);
    if is_root() && !arguments.iter().any(|a| a == "--allow-root") {
        app.arg("--allow-root");
    }
    heading("IronCurtain runs; look for the curtain in your panel. Ctrl-C ends it")?;
    process::run(app.args(arguments))
}

/// Tells the story of the README.
pub(crate) fn demo(arguments: &[String]) -> anyhow::Result<()> {
    let on_desktop = arguments.iter().any(|a| a == "--desktop");
    let (purposes, packages): (&[Purpose], &[&str]) = if on_desktop {
        (&[Purpose::Compile, Purpose::Sandbox, Purpose::App], &["--package", DAEMON, "--package", APP])
    } else {
        (&[Purpose::Compile, Purpose::Sandbox], &["--package", DAEMON])
    };
    machine::prepare(purposes)?;
    heading("Building the demo (a minute or two the first time)")?;
    let built = build(packages, &["--bins", "--example", "demo"])?;
    process::run(Command::new(cargo::find(&built, "demo")?).args(arguments))
}

/// Measures, and prints the table; on request it becomes a page of the documentation.
pub(crate) fn bench(write: bool) -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Compile, Purpose::Sandbox])?;
    heading("Building for release (some minutes the first time)")?;
    let built = build(&["--release", "--package", DAEMON], &["--bins", "--example", "bench"])?;
    let judges = cargo::build(&["--release", "--package", POLICY, "--example", "judge-bench"])?;
    heading("Measuring")?;
    let table = measure(cargo::find(&built, "bench")?)?;
    let rows = measure(cargo::find(&judges, "judge-bench")?)?;
    let table = format!("{}\n{}", table.trim_end(), rows);
    say(&table)?;
    if write {
        let page = parts::root().join("docs/benchmarks.md");
        std::fs::write(&page, format!("{ABOUT}{}\n{}", table.trim_start(), where_measured()))?;
        say("written to docs/benchmarks.md")?;
    }
    Ok(())
}

/// What a benchmark prints.
fn measure(program: &Path) -> anyhow::Result<String> {
    let mut bench = Command::new(program);
    let measured = bench.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("the benchmark")?;
    anyhow::ensure!(measured.status.success(), "the benchmark ended with {}", measured.status);
    Ok(String::from_utf8(measured.stdout)?)
}

const ABOUT: &str = "\
# Benchmarks

Measured by `cargo xtask bench --write`: ours beside others, in the same run on the same machine, release build.
Times are never tested; they are shown so that a change can be seen.

";

fn where_measured() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let kernel = process::answer(Command::new("uname").arg("-r")).map(|k| k.trim().to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "Measured on {}, {cores} cores, kernel {}.\n",
        cpu.as_deref().unwrap_or("an unknown processor"),
        kernel.as_deref().unwrap_or("unknown")
    )
}

/// Builds with the programs that must lie beside what is run.
fn build(packages: &[&str], targets: &[&str]) -> anyhow::Result<Vec<Built>> {
    let helpers = HELPERS.iter().flat_map(|helper| ["--package", helper]);
    cargo::build(&packages.iter().copied().chain(helpers).chain(targets.iter().copied()).collect::<Vec<_>>())
}

fn has_display() -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|v| std::env::var_os(v).is_some_and(|v| !v.is_empty()))
}

/// Root owns what the kernel shows of this very process.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|me| me.uid() == 0)
}
