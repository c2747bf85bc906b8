//! `ironcurtain-sandbox -s SETTINGS -c COMMAND`: one command in a sandbox, in place of `srt`.
//!
//! - It reads the settings and plans, and then is the supervisor, in the same process.
//! - What the settings do not allow is not there; a settings file that is not understood whole runs nothing.
//! - Beyond the settings, and whatever they say: what no server may read is hidden, files that run later are closed or
//!   quarantined, the environment is an allow-list, limits hold.

mod checking;
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
    enter::FAILED,
    supervisor::{NAME, find_bwrap, run_in_foreground},
    sys::{process::close_from, signals::Signals},
};

/// The reasons why a command is not run.
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
    #[error("the sandbox could not be prepared: {0}")]
    Prepare(#[from] io::Error),
}

/// Does what the words of the command line say.
pub(crate) fn run(words: Vec<String>) -> ExitCode {
    let done = match words.split_first() {
        Some((part, options)) if part == "--check" => checking::print_check(options),
        Some(_) | None => dispatch(words),
    };
    done.unwrap_or_else(|error| {
        print_error(&error.to_string());
        ExitCode::from(FAILED)
    })
}

fn dispatch(words: Vec<String>) -> Result<ExitCode, SandboxCommandError> {
    let arguments = CommandArguments::read(words)?;
    match arguments.task {
        CommandTask::Help => say(HELP),
        CommandTask::Version => say(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"), "\n")),
        CommandTask::Run(ref run) => run_command(run, &arguments),
    }
}

fn run_command(run: &CommandLine, arguments: &CommandArguments) -> Result<ExitCode, SandboxCommandError> {
    let surroundings = CommandContext::look()?;
    let settings = settings(arguments, &surroundings)?;
    let plan = plan::plan(run, arguments, &settings, &surroundings)?;
    // The settings may have come through one of them.
    close_from(3).map_err(io::Error::from)?;
    plan.notes.iter().for_each(|note| print_error(note));
    if arguments.debug {
        print_error(&serde_json::to_string(&plan.foreground.spec.view).map_err(io::Error::from)?);
    }
    // From here on a signal no longer ends us before what we made is taken away again.
    let signals = Signals::hold()?;
    let egress = plan.proxy.map(|orders| proxy::start(&orders, &surroundings.program)).transpose()?;
    Ok(run_in_foreground(plan.foreground, egress, signals, arguments.debug)?)
}

/// From the file that was named, or from the one in the home where there is one.
fn settings(
    arguments: &CommandArguments,
    surroundings: &CommandContext,
) -> Result<SrtSettingsFile, SettingsError> {
    let bwrap = find_bwrap();
    let read = |path: &Path| SrtSettingsFile::read(path, bwrap.as_deref());
    match &arguments.settings {
        Some(path) => read(path),
        None => match read(&Path::new(&surroundings.home).join(".srt-settings.json")) {
            Err(SettingsError::Missing(_)) => Ok(SrtSettingsFile::default()),
            read => read,
        },
    }
}

fn say(text: &str) -> Result<ExitCode, SandboxCommandError> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn print_error(text: &str) {
    // If standard error is closed, the exit status still says it.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}
