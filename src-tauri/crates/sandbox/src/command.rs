//! `ironcurtain-sandbox -s SETTINGS -c COMMAND`: one command in a sandbox, in place of `srt`.
//!
//! - A program of its own, which plans and then becomes `ironcurtain-sandbox` again, in the same process: what reads
//!   settings does not stay in memory.
//! - What the settings do not allow is not there; a settings file that is not understood whole runs nothing.
//! - Beyond the settings, and whatever they say: what no server may read is hidden, files that run later are closed or
//!   quarantined, the environment is an allow-list, limits hold.

mod arguments;
mod checking;
mod environment;
mod lists;
mod paths;
mod pattern;
mod plan;
mod proxy;

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::ExitCode,
};

use ironcurtain_paths::OwnProgram;

use arguments::{Arguments, HELP, Run, Task, UsageError};
use plan::{PlanError, Surroundings};
use proxy::ProxyError;

use crate::{
    enter::{FAILED, NONE},
    launch::memory_file,
    settings::{Settings, SettingsError},
    supervisor::{DEBUG, FOREGROUND, Foreground, NAME},
    sys::{
        process::{close_on_exec_from, inherit},
        signals,
    },
};

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
enum CommandError {
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
    #[error("the sandbox program `{program}` could not be started: {source}")]
    Start { program: String, source: io::Error },
}

/// Does what the command line says: the place of `ironcurtain-sandbox`, and then its words.
pub fn command_program(mut args: impl Iterator<Item = String>) -> ExitCode {
    let Some(program) = args.next() else { return ExitCode::from(FAILED) };
    let words: Vec<String> = args.collect();
    let done = match words.split_first() {
        Some((part, options)) if part == "--check" => checking::say_check(program, options),
        Some(_) | None => obey(program, words),
    };
    done.unwrap_or_else(|error| {
        complain(&error.to_string());
        ExitCode::from(FAILED)
    })
}

fn obey(program: String, words: Vec<String>) -> Result<ExitCode, CommandError> {
    let arguments = Arguments::read(words)?;
    match arguments.task {
        Task::Help => say(HELP),
        Task::Version => say(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"), "\n")),
        Task::Run(ref run) => run_command(program, run, &arguments),
    }
}

fn run_command(program: String, run: &Run, arguments: &Arguments) -> Result<ExitCode, CommandError> {
    close_on_exec_from(3).map_err(io::Error::from)?;
    let surroundings = Surroundings::look(program)?;
    let settings = settings(arguments, &surroundings)?;
    let plan = plan::plan(run, arguments, &settings, &surroundings)?;
    plan.notes.iter().for_each(|note| complain(note));
    if arguments.debug {
        complain(&serde_json::to_string(&plan.orders.spec.view).map_err(io::Error::from)?);
    }
    // From here on a signal no longer ends us before what we made is taken away again.
    signals::hold_back()?;
    let egress = plan.proxy.map(|orders| proxy::start(&orders, &surroundings.program)).transpose()?;
    Err(become_supervisor(&surroundings.program, &plan.orders, egress.as_ref(), arguments.debug))
}

/// Becomes `program` in the foreground; returns why it did not.
fn become_supervisor(
    program: &str,
    orders: &Foreground,
    egress: Option<&OwnedFd>,
    debug: bool,
) -> CommandError {
    let orders = match memory_file(orders) {
        Ok(orders) => orders,
        Err(error) => return error.into(),
    };
    let opened = match OwnProgram::open(Path::new(program)) {
        Ok(opened) => opened,
        Err(source) => return CommandError::Start { program: program.to_owned(), source },
    };
    let mut command = opened.command();
    command.arg(FOREGROUND).arg(orders.as_raw_fd().to_string());
    command.arg(egress.map_or(NONE.to_owned(), |egress| egress.as_raw_fd().to_string()));
    command.arg(if debug { DEBUG } else { NONE }).env_clear();
    let needed: Vec<_> = std::iter::once(orders.as_fd()).chain(egress.map(AsFd::as_fd)).collect();
    inherit(&mut command, &needed);
    CommandError::Start { program: program.to_owned(), source: command.exec() }
}

/// From the file that was named, or from the one in the home where there is one.
fn settings(arguments: &Arguments, surroundings: &Surroundings) -> Result<Settings, SettingsError> {
    match &arguments.settings {
        Some(path) => Settings::read(path),
        None => match Settings::read(&PathBuf::from(&surroundings.home).join(".srt-settings.json")) {
            Err(SettingsError::Missing(_)) => Ok(Settings::default()),
            read => read,
        },
    }
}

fn say(text: &str) -> Result<ExitCode, CommandError> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn complain(text: &str) {
    // If standard error is closed, the exit status still says it.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}
