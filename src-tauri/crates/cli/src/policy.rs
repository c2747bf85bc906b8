//! Looking at policies without the trusted process: check, explain, simulate, compare and replay.
//!
//! - Reads the person's files, or what ships; asks nobody and changes nothing. Whether the trusted process runs makes
//!   no difference.
//! - Grants that end with their session are known to the trusted process alone, and are not seen here.

mod check;
mod client;
mod compare;
mod explain;
mod replay;
mod simulate;
pub mod since;

use crate::screen::Screen;
use crate::sheet::Sheet;
use clap::{Args, Subcommand};
use ironcurtain_admin::UnknownServer;
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::home::Home;
use ironcurtain_daemon::PolicyFiles;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The actions on policies.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Look a policy file over: rules that never decide, rules that reach too far, tools nobody speaks about.
    Check {
        /// The compiled policy.
        file: PathBuf,
        /// The files around it.
        #[command(flatten)]
        inputs: PolicyInputs,
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
        /// The client whose standing grants count, by its executable or its name; without one, no grant counts.
        #[arg(long)]
        client: Option<String>,
        /// The compiled policy, instead of the one in force.
        #[arg(long)]
        policy: Option<PathBuf>,
        /// The files around it.
        #[command(flatten)]
        inputs: PolicyInputs,
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
        inputs: PolicyInputs,
    },
    /// Tell what becomes looser and what stricter from one policy to another.
    Diff {
        /// The compiled policy before.
        old: PathBuf,
        /// The compiled policy after.
        new: PathBuf,
        /// The files around both.
        #[command(flatten)]
        inputs: PolicyInputs,
    },
    /// Judge the calls of the audit log again, and tell which come out looser and which stricter than they did.
    Replay {
        /// Only calls since then: `30m`, `12h`, `7d`, `2026-11-01` or `2026-11-01T12:00:00Z`.
        #[arg(long, value_parser = since::moment)]
        since: Option<u64>,
        /// The compiled policy, instead of the one in force.
        #[arg(long)]
        policy: Option<PathBuf>,
        /// The files around it.
        #[command(flatten)]
        inputs: PolicyInputs,
    },
}

/// The files a policy is read with.
#[derive(Debug, Args)]
pub struct PolicyInputs {
    /// The tool annotations, instead of those in force.
    #[arg(long)]
    pub annotations: Option<PathBuf>,
    /// The dynamic lists, instead of those in force.
    #[arg(long)]
    pub lists: Option<PathBuf>,
}

/// Findings of a look at a policy, for people and for programs.
struct Report {
    text: Sheet,
    json: Value,
    good: bool,
}

/// Looks, prints, and says by the exit status whether all is well.
pub fn perform(action: &PolicyAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let report = match action {
        PolicyAction::Check { file, inputs } => check::report(file, inputs)?,
        PolicyAction::Explain { server, tool, args, sandbox, client, policy, inputs } => {
            let world = open(policy.as_deref(), inputs)?.with_sandbox(sandbox.as_deref())?;
            let has_tools = world.snapshot.annotations.tools(server).next().is_some();
            if !has_tools && world.servers().find(Some(server)).is_none() {
                return Err(UnknownServer::among(world.servers(), server).into());
            }
            let held = client.as_ref().map(|client| world.grants_of(client, server)).transpose()?;
            explain::report(&world, server, tool, args, held.as_ref())?
        }
        PolicyAction::Simulate { file, policy, inputs } => {
            simulate::report(open(policy.as_deref(), inputs)?, file)?
        }
        PolicyAction::Diff { old, new, inputs } => compare::report(old, new, inputs)?,
        PolicyAction::Replay { since, policy, inputs } => {
            replay::report(&open(policy.as_deref(), inputs)?, since.unwrap_or_default())?
        }
    };
    screen.show(&report.text, &report.json)?;
    Ok(if report.good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files judging goes by: those named on the command line, else the person's, else what ships.
fn open(policy: Option<&Path>, inputs: &PolicyInputs) -> anyhow::Result<PolicyTrial> {
    let files = PolicyFiles {
        policy: policy.map(Path::to_path_buf),
        annotations: inputs.annotations.clone(),
        lists: inputs.lists.clone(),
    };
    Ok(PolicyTrial::open(Home::from_env()?, &files, &std::env::current_dir()?)?)
}
