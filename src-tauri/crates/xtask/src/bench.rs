//! `cargo xtask bench`: what we cost, beside others in the same run on the same machine.

use crate::cargo;
use crate::machine::{self, Purpose};
use crate::parts::{self, DAEMON, POLICY, SANDBOX};
use crate::process::{self, command};
use crate::terminal::{heading, say};
use crate::{programs, servers};
use anyhow::Context;
use std::process::{Command, Stdio};

/// Measures, and prints the tables; on request they become a page of the documentation.
pub(crate) fn run(write: bool, with_srt: bool) -> anyhow::Result<()> {
    let mut purposes = vec![Purpose::Compile, Purpose::Sandbox];
    if with_srt {
        purposes.push(Purpose::Tests);
    }
    machine::prepare(&purposes)?;
    if with_srt {
        servers::install()?;
    }
    heading("Building for release (some minutes the first time)")?;
    let targets = ["--bins", "--example", "bench", "--example", "sandbox-bench"];
    let built = programs::build_for_release(&["--package", DAEMON, "--package", SANDBOX], &targets)?;
    let judges = cargo::build(&["--release", "--package", POLICY, "--example", "judge-bench"])?;
    heading("Measuring")?;
    let mut sandbox = Command::new(cargo::find(&built, "sandbox-bench")?);
    sandbox.arg(cargo::find(&built, SANDBOX)?);
    if with_srt {
        sandbox.arg(parts::root().join("target/npm/node_modules/.bin/srt"));
    }
    let whole = measured(&mut Command::new(cargo::find(&built, "bench")?))?;
    let judging = measured(&mut Command::new(cargo::find(&judges, "judge-bench")?))?;
    let tables = format!("{whole}{judging}\n{}", measured(&mut sandbox)?);
    say(&tables)?;
    if write {
        let page = parts::root().join("docs/benchmarks.md");
        std::fs::write(&page, format!("{ABOUT}{}\n{}", tables.trim_start(), where_measured()))?;
        say("written to docs/benchmarks.md")?;
    }
    Ok(())
}

/// The table that a program prints.
fn measured(program: &mut Command) -> anyhow::Result<String> {
    let output = program.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("the benchmark")?;
    anyhow::ensure!(output.status.success(), "the benchmark ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned() + "\n")
}

const ABOUT: &str = "\
# Benchmarks

Measured by `cargo xtask bench --with-srt --write`: ours beside others, in the same run on the same machine, release
build. Times are never tested; they are shown so that a change can be seen. Judging is the quickest of 2,000 batches of 20
times the mix, which what else runs on the machine has disturbed least.

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
