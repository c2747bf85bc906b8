//! `run`: runs a program in a sandbox of the trusted process, on this terminal.

use crate::arguments::RunArguments;
use crate::connection::Connection;
use anyhow::Context;
use ironcurtain_protocol::{RunHello, RunNote};
use std::process::ExitCode;

/// Exit status if the run was cut off.
const CUT_OFF: u8 = 125;

/// Runs the program and returns its exit status.
pub fn perform(options: RunArguments) -> anyhow::Result<ExitCode> {
    let cwd = std::env::current_dir().context("failed to determine the working directory")?;
    let cwd = cwd.into_os_string().into_string();
    let cwd = cwd.map_err(|cwd| anyhow::anyhow!("the path `{}` is not valid UTF-8", cwd.display()))?;
    // The trusted process selects the variables that the program gets.
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let passed = |(name, _): &(String, String)| is_passed(name);
    let env = std::env::vars_os().filter_map(text).filter(passed).collect();
    let mut connection = Connection::of_run(RunHello {
        argv: options.command,
        cwd,
        env,
        ports: options.port,
        publish: options.publish,
    })?;
    let note: RunNote = connection.note().context("IronCurtain ended the run")?;
    let RunNote::Exited { status } = note;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(CUT_OFF)))
}

/// Returns whether a variable may be passed on. The others do not leave this process.
fn is_passed(name: &str) -> bool {
    const NAMES: [&str; 10] =
        ["COLORTERM", "FORCE_COLOR", "LANG", "LOGNAME", "NO_COLOR", "PATH", "SHELL", "TERM", "TZ", "USER"];
    NAMES.contains(&name) || name.starts_with("LC_")
}
