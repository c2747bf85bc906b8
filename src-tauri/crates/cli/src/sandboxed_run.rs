//! `run`: runs a program in a sandbox of the trusted process, on this terminal.

use crate::arguments::RunArguments;
use crate::connection::Connection;
use crate::run_profile;
use crate::screen::Screen;
use anyhow::Context;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{RunHello, RunNote};
use std::path::Path;
use std::process::ExitCode;

/// Exit status if the run was cut off.
const CUT_OFF: u8 = 125;

/// Runs the program and returns its exit status.
pub fn perform(options: RunArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let cwd = std::env::current_dir().context("failed to determine the working directory")?;
    let cwd = cwd.into_os_string().into_string();
    let cwd = cwd.map_err(|cwd| anyhow::anyhow!("the path `{}` is not valid UTF-8", cwd.display()))?;
    let mut profile = run_profile::choice(options.profile.as_deref())?;
    if options.learn.is_some() {
        profile.get_or_insert_with(run_profile::plain);
    }
    let chosen = run_profile::chosen(&home, profile.as_ref(), &options.command, Path::new(&cwd))?;
    if options.check {
        return run_profile::check(&home, chosen, &options.command, Path::new(&cwd), screen);
    }
    options.learn.as_deref().map(run_profile::may_be_proposed).transpose()?;
    // Variables that the profile does not name do not leave this process.
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let passed = |(name, _): &(String, String)| chosen.passes(name);
    let env = std::env::vars_os().filter_map(text).filter(passed).collect();
    let learn = options.learn.is_some();
    let mut connection = Connection::of_run(RunHello {
        argv: options.command,
        cwd,
        env,
        ports: options.port,
        publish: options.publish,
        profile,
        learn,
    })?;
    let note: RunNote = connection.note().context("IronCurtain ended the run")?;
    let RunNote::Exited { status, learned } = note;
    if let Some(file) = &options.learn {
        run_profile::write_proposal(&home, file, chosen, learned)?;
        screen.note(&format!("The proposed profile is in {}.", file.display()))?;
    }
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(CUT_OFF)))
}
