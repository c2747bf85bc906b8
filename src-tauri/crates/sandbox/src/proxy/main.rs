//! Proxy of a single command: `ironcurtain-sandbox-proxy DESCRIPTOR`, started by `ironcurtain-sandbox`.
//!
//! - Reads its configuration from standard input and receives the sandbox's listener over the descriptor. Exits if the
//!   listener does not arrive.
//! - Refuses connections that no rule allows, because there is no user to ask.
//! - Dies with its parent.

#[cfg(target_os = "linux")]
mod resolver;
#[cfg(target_os = "linux")]
mod serving;
#[cfg(target_os = "linux")]
mod stderr_log;

/// Stub that fails, because this platform has no sandboxes.
#[cfg(not(target_os = "linux"))]
mod serving {
    pub(crate) fn run() -> Result<std::io::Error, Box<dyn std::error::Error>> {
        Err(ironcurtain_sandbox::SandboxLaunchError::Unsupported.into())
    }
}

use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let error = match serving::run() {
        Ok(error) => error.to_string(),
        Err(error) => error.to_string(),
    };
    // Ignores a closed standard error: the exit status still reports the failure.
    let _ = writeln!(io::stderr(), "ironcurtain-sandbox: the network proxy failed: {error}");
    ExitCode::FAILURE
}
