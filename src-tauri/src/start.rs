//! Starts the app from its command line, or shows the reason it cannot start.

use crate::backend::{TrustedProcess, TrustedProcessError};
use crate::consent::DialogConsent;
use crate::options::{self, AppOptions, HELP, Invocation};
use crate::shell;
use crate::single_instance::activate_running;
use crate::window::{Preferences, WindowProcess, run_window};
use ironcurtain_config::home::Home;
use ironcurtain_config::home::HomeError;
use ironcurtain_daemon::EventLog;
#[cfg(target_os = "linux")]
use ironcurtain_visible as visible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;

/// Reason the app is not running.
#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Option(#[from] options::OptionError),
    #[error("no display found; run `ironcurtain daemon` instead")]
    NoDisplay,
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("failed to find this program's own folder: {0}")]
    Programs(io::Error),
    #[error(transparent)]
    Trusted(#[from] TrustedProcessError),
    #[error(transparent)]
    Shell(#[from] shell::ShellError),
}

/// Runs the app until the user quits.
#[must_use]
pub fn run() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,zbus=warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(|| EventLog::new(io::stderr()))
        .init();
    let outcome = match options::read(std::env::args_os().skip(1)) {
        Ok(Invocation::App(options)) => app(options),
        Ok(Invocation::Window) => return window(),
        Ok(Invocation::Help) => return print(HELP),
        Ok(Invocation::Version) => {
            return print(concat!("ironcurtain-desktop ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(AppError::Trusted(error)) if error.is_already_running() && activate_running() => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("{error}");
            let (title, text) = error_text(&error);
            message(title, &text);
            ExitCode::FAILURE
        }
    }
}

fn app(options: AppOptions) -> Result<(), AppError> {
    // Starts the window's process in parallel with the trusted process, because both take about the same time to start.
    let prestarted = if options.background { None } else { WindowProcess::start().ok() };
    toolkit()?;
    let home = Home::from_env()?;
    let person = home.user_home.clone();
    let (desktop, seat) = DialogConsent::new(person.clone());
    desktop.set_notices(Preferences::load(&home).notifications);
    let settings =
        ironcurtain_daemon::DaemonOptions { home, programs: programs()?, allow_root: options.allow_root };
    let trusted = TrustedProcess::start(settings, Arc::new(desktop.clone()))?;
    shell::run(options, Arc::new(trusted), desktop, seat, person, prestarted)?;
    Ok(())
}

/// Runs as the process of the settings window.
fn window() -> ExitCode {
    match run_window() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the directory of this program and all other programs of IronCurtain.
fn programs() -> Result<PathBuf, AppError> {
    let this = std::env::current_exe().map_err(AppError::Programs)?;
    let missing = || AppError::Programs(io::ErrorKind::NotFound.into());
    this.parent().map(PathBuf::from).ok_or_else(missing)
}

/// Returns the title and text of the error message.
fn error_text(error: &AppError) -> (&'static str, String) {
    if let AppError::Trusted(trusted) = error
        && trusted.is_already_running()
    {
        let text = "It is running without a window here: in a terminal, or in another desktop session. \
                    Run `ironcurtain status` for details.";
        return ("IronCurtain is already running", text.to_owned());
    }
    ("IronCurtain could not start", format!("Agents are denied until it does.\n\n{error}"))
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(target_os = "linux")]
fn toolkit() -> Result<(), AppError> {
    gtk::init().map_err(|_| AppError::NoDisplay)
}

#[cfg(not(target_os = "linux"))]
fn toolkit() -> Result<(), AppError> {
    Ok(())
}

/// Shows a message box, without depending on the rest of the app.
#[cfg(target_os = "linux")]
fn message(title: &str, text: &str) {
    // Without a display, the message box would block forever.
    if toolkit().is_err() {
        return;
    }
    let dialog = rfd::AsyncMessageDialog::new().set_level(rfd::MessageLevel::Error);
    // Runs the message box on this thread, which owns GTK. The blocking variant would wait for another thread.
    let closed = dialog.set_title(title).set_description(visible::lines(text)).show();
    gtk::glib::MainContext::default().block_on(closed);
}

#[cfg(not(target_os = "linux"))]
fn message(_title: &str, _text: &str) {
    // The error is already logged.
}
