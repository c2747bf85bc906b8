//! The shell: tray, consent dialog and settings window around the trusted process.

use std::process::ExitCode;

/// Runs the app until the person quits it.
#[must_use]
pub fn run() -> ExitCode {
    match tauri::Builder::default().run(tauri::generate_context!()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
