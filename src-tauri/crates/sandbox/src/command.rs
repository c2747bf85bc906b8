//! `ironcurtain-sandbox -s SETTINGS -c COMMAND`: runs one command in a sandbox, as a drop-in replacement for `srt`.
//!
//! - Reads the settings, plans the sandbox and supervises it, all in one process.
//! - The sandbox contains only what the settings allow. Settings that cannot be parsed completely are rejected.
//! - Some protections do not depend on the settings: sensitive paths are hidden, autostart files are read-only or
//!   quarantined, environment variables must be on an allow-list, and resource limits apply.

mod check_report;
mod environment;
mod lists;
mod plan;
mod proxy;

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use ironcurtain_srt_settings::{
    CommandArguments, CommandLine, CommandTask, HELP, SettingsError, SrtSettingsFile, UsageError,
};
use plan::{CommandContext, PlanError};
use proxy::ProxyError;

use crate::{
    outcome::FAILED,
    supervisor::{NAME, find_bwrap, run_in_foreground},
    sys::{process::close_from, signals::Signals},
};

/// Failure to run a command in a sandbox.
#[derive(Debug, thiserror::Error)]
enum SandboxCommandError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("failed to prepare the sandbox: {0}")]
    Prepare(#[from] io::Error),
}

/// Runs the command line and returns the exit status.
pub(crate) fn run(words: Vec<String>) -> ExitCode {
    let done = match words.split_first() {
        Some((part, options)) if part == "--check" => check_report::print_check(options),
        Some(_) | None => dispatch(words),
    };
    done.unwrap_or_else(|error| {
        print_error(&error.to_string());
        ExitCode::from(FAILED)
    })
}

fn dispatch(words: Vec<String>) -> Result<ExitCode, SandboxCommandError> {
    let arguments = CommandArguments::parse(words)?;
    match arguments.task {
        CommandTask::Help => print(HELP),
        CommandTask::Version => print(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"), "\n")),
        CommandTask::Run(ref run) => run_command(run, &arguments),
    }
}

fn run_command(run: &CommandLine, arguments: &CommandArguments) -> Result<ExitCode, SandboxCommandError> {
    let context = CommandContext::detect()?;
    let settings = settings(arguments, &context)?;
    let plan = plan::plan(run, arguments, &settings, &context)?;
    // The settings file may itself be an inherited descriptor, so descriptors are closed only after the file is read.
    close_from(3).map_err(io::Error::from)?;
    plan.notes.iter().for_each(|note| print_error(note));
    if arguments.debug {
        print_error(&serde_json::to_string(&plan.foreground.spec.view).map_err(io::Error::from)?);
    }
    // From here on, signals must not kill this process before it has cleaned up.
    let signals = Signals::block_forwarded()?;
    let egress = plan.proxy.map(|config| proxy::start(&config, &context.program)).transpose()?;
    Ok(run_in_foreground(plan.foreground, egress, signals, arguments.debug)?)
}

/// Reads the settings file named on the command line, or the default file in the home directory.
fn settings(
    arguments: &CommandArguments,
    context: &CommandContext,
) -> Result<SrtSettingsFile, SettingsError> {
    let bwrap = find_bwrap();
    let read = |path: &Path| SrtSettingsFile::read(path, bwrap.as_deref());
    match &arguments.settings {
        Some(path) => read(path),
        None => match read(&Path::new(&context.home).join(".srt-settings.json")) {
            Err(SettingsError::Missing(_)) => Ok(SrtSettingsFile::default()),
            read => read,
        },
    }
}

fn print(text: &str) -> Result<ExitCode, SandboxCommandError> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn print_error(text: &str) {
    // Ignores a closed standard error: the exit status still reports the failure.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}
