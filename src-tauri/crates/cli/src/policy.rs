//! Looking at policies without the trusted process: check, explain, simulate and compare.
//!
//! - Reads the person's files, or what ships; asks nobody and changes nothing.
//! - Live grants belong to the trusted process and are not seen here.

mod check;
mod compare;
mod explain;
mod files;
mod simulate;

use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Look a policy file over: rules that never decide, rules that reach too far, tools nobody speaks about.
    Check {
        /// The compiled policy.
        file: PathBuf,
        /// The files around it.
        #[command(flatten)]
        beside: Beside,
    },
    /// Tell in words how one call is judged.
    Explain {
        /// The server.
        #[arg(long)]
        server: String,
        /// The tool.
        #[arg(long)]
        tool: String,
        /// The arguments, as a JSON object.
        #[arg(long, default_value = "{}")]
        args: String,
        /// The session sandbox directory; without one, nothing is in it and relative paths start here.
        #[arg(long)]
        sandbox: Option<PathBuf>,
        /// The compiled policy, instead of the one in force.
        #[arg(long)]
        policy: Option<PathBuf>,
        /// The files around it.
        #[command(flatten)]
        beside: Beside,
    },
    /// Judge the calls of a file and compare with what it expects.
    Simulate {
        /// The scenarios.
        file: PathBuf,
        /// The compiled policy, instead of the one in force.
        #[arg(long)]
        policy: Option<PathBuf>,
        /// The files around it.
        #[command(flatten)]
        beside: Beside,
    },
    /// Tell what becomes looser and what stricter from one policy to another.
    Diff {
        /// The compiled policy before.
        old: PathBuf,
        /// The compiled policy after.
        new: PathBuf,
        /// The files around both.
        #[command(flatten)]
        beside: Beside,
    },
}

/// The files a policy is read with.
#[derive(Debug, Args)]
pub struct Beside {
    /// The tool annotations, instead of those in force.
    #[arg(long)]
    pub annotations: Option<PathBuf>,
    /// The dynamic lists, instead of those in force.
    #[arg(long)]
    pub lists: Option<PathBuf>,
}

/// What a look at a policy found, for people and for programs.
struct Report {
    text: String,
    json: Value,
    good: bool,
}

/// Looks, prints, and says by the exit status whether all is well.
pub fn perform(action: &PolicyAction, json: bool) -> anyhow::Result<ExitCode> {
    let report = match action {
        PolicyAction::Check { file, beside } => check::report(file, beside)?,
        PolicyAction::Explain { server, tool, args, sandbox, policy, beside } => {
            let world = files::World::open(policy.as_deref(), beside)?.with_sandbox(sandbox.as_deref())?;
            explain::report(&world, server, tool, args)?
        }
        PolicyAction::Simulate { file, policy, beside } => {
            simulate::report(files::World::open(policy.as_deref(), beside)?, file)?
        }
        PolicyAction::Diff { old, new, beside } => compare::report(old, new, beside)?,
    };
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &report.json)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", report.text)?;
    }
    Ok(if report.good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
