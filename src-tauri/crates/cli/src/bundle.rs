//! `bundle`: builds, verifies, compares and tests an organization's signed rules.
//!
//! - Intended for administrators, on any machine. Does not use the trusted process or change this machine's settings.

use crate::policy::{PolicyReport, compare, simulate};
use crate::screen::Screen;
use crate::text_lines::{TextLines, counted};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_bundle::{BundleSource, PolicyBundle, SigningKey, VerifyingKey};
use ironcurtain_config::home::Home;
use ironcurtain_config::{ManagedPolicy, PolicyFiles};
use ironcurtain_policy::Policy;
use ironcurtain_policy_tools::diff::diff;
use ironcurtain_policy_tools::simulate::Scenarios;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Subcommand)]
pub enum BundleAction {
    /// Build and sign a bundle.
    ///
    /// The folder contains `compiled-policy.json`, and optionally `dynamic-lists.json` and `scenarios.json`.
    Build {
        /// Folder with the rules.
        folder: PathBuf,
        /// Private key that signs the bundle: PEM, P-256.
        #[arg(long)]
        key: PathBuf,
        /// File to write the bundle to.
        #[arg(long)]
        output: PathBuf,
        /// Name of the revision, for people, such as a commit.
        #[arg(long)]
        revision: Option<String>,
        /// Number that must be higher than in the previous bundle. Default: the time in seconds.
        #[arg(long)]
        sequence: Option<u64>,
    },
    /// Verify the signature of a bundle and check its rules.
    Verify {
        /// Bundle file.
        file: PathBuf,
        #[command(flatten)]
        key: BundleKeyArguments,
    },
    /// Compare two bundles, and show which decisions become looser or stricter.
    Diff {
        /// Old bundle file.
        old: PathBuf,
        /// New bundle file.
        new: PathBuf,
        #[command(flatten)]
        key: BundleKeyArguments,
    },
    /// Decide the calls in the bundle's scenarios, and compare the decisions with the expected ones.
    Test {
        /// Bundle file.
        file: PathBuf,
        #[command(flatten)]
        key: BundleKeyArguments,
    },
}

/// Public key of a bundle.
#[derive(Debug, Args)]
pub struct BundleKeyArguments {
    /// Public key that verifies the bundle: PEM, P-256.
    #[arg(long)]
    public_key: PathBuf,
}

/// Runs the subcommand and prints its report. Returns a failing exit status if a scenario failed.
pub fn perform(action: &BundleAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let report = match action {
        BundleAction::Build { folder, key, output, revision, sequence } => {
            build(folder, key, output, (revision.clone(), *sequence))?
        }
        BundleAction::Verify { file, key } => verify(file, key)?,
        BundleAction::Diff { old, new, key } => compare(old, new, key)?,
        BundleAction::Test { file, key } => run_scenarios(file, key)?,
    };
    screen.show(&report.text, &report.json)?;
    Ok(if report.good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(
    folder: &Path,
    key: &Path,
    output: &Path,
    (revision, sequence): (Option<String>, Option<u64>),
) -> anyhow::Result<PolicyReport> {
    let key_error = || format!("failed to load the key `{}`", key.display());
    let key = SigningKey::from_pem(&text(key)?).with_context(key_error)?;
    let now = now()?;
    let sequence = sequence.unwrap_or(now);
    let revision = revision.unwrap_or_else(|| sequence.to_string());
    let bytes = BundleSource::read(folder)?.build(&key, revision, sequence, now)?;
    // Never writes a bundle that no machine would use.
    let bundle = PolicyBundle::open(&bytes, &key.verifying_key()?, now)?;
    let policy = rules(&bundle)?;
    std::fs::write(output, &bytes).with_context(|| format!("failed to write `{}`", output.display()))?;
    Ok(report(&bundle, &policy))
}

fn verify(file: &Path, key: &BundleKeyArguments) -> anyhow::Result<PolicyReport> {
    let bundle = open(file, key)?;
    Ok(report(&bundle, &rules(&bundle)?))
}

fn report(bundle: &PolicyBundle, policy: &Policy) -> PolicyReport {
    let (revision, sequence, rules) = (&bundle.revision, bundle.sequence, policy.rules().len());
    let mut text = TextLines::default();
    text.line(format_args!(
        "Revision `{revision}`, number {sequence}, {}. The signature is valid.",
        counted(rules, "rule")
    ));
    let json = json!({ "revision": revision, "sequence": sequence, "rules": rules });
    PolicyReport { text, json, good: true }
}

fn compare(old: &Path, new: &Path, key: &BundleKeyArguments) -> anyhow::Result<PolicyReport> {
    let combined =
        |file: &Path| anyhow::Ok(ManagedPolicy::check_with_built_in(&Home::from_env()?, &open(file, key)?)?);
    let difference = diff(&combined(old)?, &combined(new)?, &trial()?.snapshot.annotations);
    Ok(PolicyReport { text: compare::to_text(&difference), json: compare::as_json(&difference), good: true })
}

fn run_scenarios(file: &Path, key: &BundleKeyArguments) -> anyhow::Result<PolicyReport> {
    let bundle = open(file, key)?;
    let Some(scenarios) = bundle.document("scenarios").map(Value::to_string) else {
        bail!("the bundle `{}` has no scenarios; add `scenarios.json` to its folder", file.display());
    };
    let scenarios = Scenarios::parse(&scenarios).context("the scenarios in the bundle are invalid")?;
    let mut trial = trial()?;
    let mut snapshot = (*trial.snapshot).clone();
    snapshot.policy = ManagedPolicy::check_with_built_in(&Home::from_env()?, &bundle)?;
    let protected = (*snapshot.protected).clone().with_managed(&snapshot.policy);
    trial.snapshot = snapshot.with_protection(protected).into();
    simulate::report_on(trial, &scenarios, file)
}

/// Returns this machine's servers and annotations.
fn trial() -> anyhow::Result<PolicyTrial> {
    Ok(PolicyTrial::open(Home::from_env()?, &PolicyFiles::default(), &std::env::current_dir()?)?)
}

fn rules(bundle: &PolicyBundle) -> anyhow::Result<Policy> {
    ManagedPolicy::check(&Home::from_env()?, bundle).context("the rules in the bundle are invalid")
}

fn open(file: &Path, key: &BundleKeyArguments) -> anyhow::Result<PolicyBundle> {
    let key_error = || format!("failed to load the key `{}`", key.public_key.display());
    let key = VerifyingKey::from_pem(&text(&key.public_key)?).with_context(key_error)?;
    let bytes = std::fs::read(file).with_context(|| format!("failed to read `{}`", file.display()))?;
    PolicyBundle::open(&bytes, &key, now()?)
        .with_context(|| format!("the bundle `{}` is refused", file.display()))
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("failed to read `{}`", file.display()))
}

/// Returns the time in seconds since the Unix epoch.
fn now() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock of this computer is wrong")?.as_secs())
}
