//! `policy`: checks, explains, simulates, compares and replays policies.
//!
//! - Reads the user's or the built-in policy files and changes nothing. Does not need the trusted process.
//! - Ignores session grants, which only the trusted process knows.

mod check;
mod client;
pub mod compare;
mod explain;
pub mod point_in_time;
mod replay;
pub mod simulate;

use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::{Args, Subcommand};
use ironcurtain_admin::UnknownServer;
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::PolicyFiles;
use ironcurtain_config::home::Home;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Check a policy file for rules that never decide, rules that are too broad, and tools that no rule covers.
    Check {
        /// Compiled policy file.
        file: PathBuf,
        #[command(flatten)]
        inputs: PolicyInputs,
    },
    /// Explain how a call would be decided, and why.
    Explain {
        /// Name of the server.
        #[arg(long)]
        server: String,
        /// Name of the tool.
        #[arg(long)]
        tool: String,
        /// Arguments of the call, as a JSON object.
        #[arg(long, default_value = "{}")]
        args: String,
        /// Scratch folder of the session. Without it, relative paths start in the current folder.
        #[arg(long)]
        sandbox: Option<PathBuf>,
        /// Client whose permanent grants to consider, by its executable or its name. Without it, grants are ignored.
        #[arg(long)]
        client: Option<String>,
        /// Compiled policy file, instead of the policy in effect.
        #[arg(long)]
        policy: Option<PathBuf>,
        #[command(flatten)]
        inputs: PolicyInputs,
    },
    /// Decide the calls in a scenario file, and compare the decisions with the expected ones.
    Simulate {
        /// Scenario file.
        file: PathBuf,
        /// Compiled policy file, instead of the policy in effect.
        #[arg(long)]
        policy: Option<PathBuf>,
        #[command(flatten)]
        inputs: PolicyInputs,
    },
    /// Compare two policies, and show which decisions become looser or stricter.
    Diff {
        /// Old compiled policy file.
        old: PathBuf,
        /// New compiled policy file.
        new: PathBuf,
        #[command(flatten)]
        inputs: PolicyInputs,
    },
    /// Re-evaluate the calls in the audit log, and show which decisions become looser or stricter.
    Replay {
        /// Only calls since this time: `30m`, `12h`, `7d`, `2026-11-01` or `2026-11-01T12:00:00Z`.
        #[arg(long, value_parser = point_in_time::parse_time)]
        since: Option<u64>,
        /// Compiled policy file, instead of the policy in effect.
        #[arg(long)]
        policy: Option<PathBuf>,
        #[command(flatten)]
        inputs: PolicyInputs,
    },
}

/// Annotation and list files that replace the ones in effect.
#[derive(Debug, Args)]
pub struct PolicyInputs {
    /// Tool annotations file, instead of the annotations in effect.
    #[arg(long)]
    pub annotations: Option<PathBuf>,
    /// Dynamic lists file, instead of the lists in effect.
    #[arg(long)]
    pub lists: Option<PathBuf>,
}

/// Result of a policy command, both as text and as JSON.
pub struct PolicyReport {
    pub text: TextLines,
    pub json: Value,
    pub good: bool,
}

/// Runs the subcommand and prints its report. Returns a failing exit status if the report has findings or failures.
pub fn perform(action: &PolicyAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let report = match action {
        PolicyAction::Check { file, inputs } => check::report(file, inputs)?,
        PolicyAction::Explain { server, tool, args, sandbox, client, policy, inputs } => {
            let trial = open(policy.as_deref(), inputs)?.with_sandbox(sandbox.as_deref())?;
            let has_tools = trial.snapshot.annotations.tools(server).next().is_some();
            if !has_tools && trial.servers().find(Some(server)).is_none() {
                return Err(UnknownServer::new(trial.servers(), server).into());
            }
            let held = client.as_ref().map(|client| trial.grants_of(client, server)).transpose()?;
            explain::report(&trial, server, tool, args, held.as_ref())?
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

/// Loads each policy file: the file named on the command line, otherwise the user's file, otherwise the built-in file.
fn open(policy: Option<&Path>, inputs: &PolicyInputs) -> anyhow::Result<PolicyTrial> {
    let files = PolicyFiles {
        policy: policy.map(Path::to_path_buf),
        annotations: inputs.annotations.clone(),
        lists: inputs.lists.clone(),
        with_managed_rules: false,
    };
    Ok(PolicyTrial::open(Home::from_env()?, &files, &std::env::current_dir()?)?)
}
