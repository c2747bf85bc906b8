//! `export`: sends the audit log to a collector, and writes it as OCSF events.

use crate::policy::point_in_time;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::{Args, Subcommand, ValueEnum};
use ironcurtain_admin::collector_export::{
    ExportStatus, ExportTarget, ManagedExport, disable_export, enable_export, export_sample, export_status,
    exported_paths, write_ocsf,
};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, ExportedPaths};
use ironcurtain_secrets::SecretName;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum ExportAction {
    /// Send new entries of the audit log to an OpenTelemetry collector. Shows a sample and asks first.
    Enable(EnableOptions),
    /// Stop the export. Unsent entries will not be sent.
    Disable,
    /// Show what was sent, what was not, and the public key of the signed heads.
    Status,
    /// Show the newest entries as they would be sent.
    Sample {
        /// Form in which paths are sent. Default: as configured, or hashed.
        #[arg(long, value_enum)]
        paths: Option<PathsOption>,
    },
    /// Append the entries that are not in a file yet, as OCSF API Activity events.
    Ocsf {
        /// File, which is created if it does not exist.
        file: PathBuf,
        /// Form in which paths are written. Default: as configured, or hashed.
        #[arg(long, value_enum)]
        paths: Option<PathsOption>,
    },
}

/// Options of `export enable`.
#[derive(Debug, Args)]
pub struct EnableOptions {
    /// Base address of the collector, such as `https://otel.example.com:4318`.
    url: String,
    /// Form in which paths are sent. Default: as your organization has set, or hashed.
    #[arg(long, value_enum)]
    paths: Option<PathsOption>,
    /// Name of the secret to send as a bearer token, as stored with `ironcurtain secrets set NAME`.
    #[arg(long, value_name = "NAME")]
    token: Option<String>,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Form in which paths are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PathsOption {
    /// As recorded.
    Full,
    /// As hashes with a key that stays on this machine.
    Hashed,
    /// Not at all.
    None,
}

impl From<PathsOption> for ExportedPaths {
    fn from(option: PathsOption) -> Self {
        match option {
            PathsOption::Full => Self::Full,
            PathsOption::Hashed => Self::Hashed,
            PathsOption::None => Self::None,
        }
    }
}

/// Performs the action.
pub fn perform(action: ExportAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    match action {
        ExportAction::Enable(options) => return enable(&home, options, screen),
        ExportAction::Disable => {
            disable_export(&home)?;
            screen
                .show(&["The record is not exported."].into_iter().collect(), &json!({ "enabled": false }))?;
        }
        ExportAction::Status => {
            let status = export_status(&home)?;
            screen.show(&status_text(&status), &status_json(&status))?;
        }
        ExportAction::Sample { paths } => {
            let events = export_sample(&home, chosen(&home, paths)?)?;
            screen.show(&sample_text(&events)?, &Value::from(events))?;
        }
        ExportAction::Ocsf { file, paths } => ocsf(&home, &file, paths, screen)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn enable(home: &Home, options: EnableOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let EnableOptions { url, paths, token, yes } = options;
    let token = token.as_deref().map(SecretName::try_from).transpose()?;
    let choice = ExportTarget { url, paths: paths.map(Into::into), token };
    let events = export_sample(home, exported_paths(choice.paths)?)?;
    let mut out = TextLines::default();
    out.line(format_args!("New entries will be sent to {} like these:", choice.url));
    out.append(&sample_text(&events)?);
    screen.show(&out, &json!({ "url": choice.url, "sample": events }))?;
    if !yes && !screen.confirmed("Export them?")? {
        screen.note("Nothing was written.")?;
        return Ok(ExitCode::FAILURE);
    }
    enable_export(home, &choice)?;
    screen.note(
        "New entries are exported while IronCurtain runs. `ironcurtain doctor` checks the collector.",
    )?;
    Ok(ExitCode::SUCCESS)
}

fn ocsf(home: &Home, file: &Path, paths: Option<PathsOption>, screen: Screen) -> anyhow::Result<()> {
    let written = write_ocsf(home, file, chosen(home, paths)?)?;
    let mut out = TextLines::default();
    out.line(format_args!("{} new events in {}.", written.events, file.display()));
    if written.lost > 0 {
        out.line(format_args!("{} entries are missing, because they were removed by age.", written.lost));
    }
    screen.show(&out, &json!({ "events": written.events, "lost": written.lost, "file": file }))
}

/// Returns the chosen path form, or the configured form by default.
fn chosen(home: &Home, paths: Option<PathsOption>) -> anyhow::Result<ExportedPaths> {
    let configured = Config::load(home)?.export.map(|export| export.paths);
    Ok(exported_paths(paths.map(Into::into).or(configured))?)
}

fn sample_text(events: &[Value]) -> anyhow::Result<TextLines> {
    let mut out = TextLines::default();
    for event in events {
        serde_json::to_string_pretty(event)?.lines().for_each(|line| out.line(line));
    }
    if events.is_empty() {
        out.line("The record has no entries yet.");
    }
    Ok(out)
}

fn status_text(status: &ExportStatus) -> TextLines {
    let ExportStatus { config, managed, state, unsent_bytes, key } = status;
    let mut out = TextLines::default();
    match config {
        None => out.line("The record is not exported. To export it: ironcurtain export enable URL"),
        Some(config) => {
            let url = config.url.split(['?', '#']).next().unwrap_or_default();
            out.line(format_args!("The record is exported to {url}."));
            out.line(paths_text(config.paths, managed.as_ref()));
        }
    }
    if let Some(missing) = managed.as_ref().and_then(|managed| managed.missing.as_ref()) {
        out.line(format_args!("No server and no run starts: {missing}"));
    }
    match state {
        Some(state) => {
            let times = state.last_success.map_or_else(|| "never".to_owned(), point_in_time::format_time);
            out.line(format_args!(
                "Sent: {} records, last {times}. Not sent yet: {unsent_bytes} bytes of the log.",
                state.sent
            ));
            if state.dropped > 0 || state.refused > 0 {
                out.line(format_args!(
                    "Not sent at all: {} entries over the limit of the backlog, {} that the collector refused.",
                    state.dropped, state.refused
                ));
            }
            if let Some(failure) = &state.failure {
                out.line(format_args!("Failing: {failure}."));
            }
        }
        None if config.is_some() => out.line("Nothing was sent yet; the export runs while IronCurtain runs."),
        None => {}
    }
    if let Some(key) = key {
        out.line(format_args!("Public key of the signed heads: {key}"));
    }
    out
}

/// Returns a sentence about the form in which paths are exported.
fn paths_text(paths: ExportedPaths, managed: Option<&ManagedExport>) -> String {
    let form = match paths {
        ExportedPaths::Full => "Paths are exported in full",
        ExportedPaths::Hashed => "Paths are exported as hashes",
        ExportedPaths::None => "Paths are not exported",
    };
    match managed.filter(|managed| managed.paths.is_some()) {
        Some(managed) => format!("{form}; {} has set this.", managed.organization),
        None => format!("{form}."),
    }
}

fn status_json(status: &ExportStatus) -> Value {
    let ExportStatus { config, managed, state, unsent_bytes, key } = status;
    let managed = managed.as_ref().map(|managed| {
        json!({
            "organization": managed.organization, "url": managed.url,
            "paths": managed.paths.map(ExportedPaths::as_str), "missing": managed.missing,
        })
    });
    let url = config.as_ref().and_then(|config| config.url.split(['?', '#']).next());
    json!({
        "enabled": config.is_some(), "url": url, "paths": config.as_ref().map(|config| config.paths.as_str()),
        "managed": managed, "state": state, "behindBytes": unsent_bytes,
        "publicKey": key.as_ref().map(ToString::to_string),
    })
}
