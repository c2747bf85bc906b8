//! Entry point of the tray app. All code is in the library, so that tests can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironcurtain_desktop::run()
}
