//! The proxy of a single command: `ironcurtain-sandbox-proxy DESCRIPTOR`, started by `ironcurtain-sandbox`.
//!
//! - Its orders come on standard input. Through the descriptor comes the listener that is in the sandbox; where it does
//!   not come, there is nothing to do.
//! - Nobody can be asked, so what its rules do not know is refused.
//! - It ends with whoever started it.

#[cfg(target_os = "linux")]
mod resolver;
#[cfg(target_os = "linux")]
mod serving;
#[cfg(target_os = "linux")]
mod stderr_log;

/// Elsewhere there is no sandbox whose network it could be.
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
    // If nobody listens, the exit status still says it.
    let _ = writeln!(io::stderr(), "ironcurtain-sandbox: the way to the network ended: {error}");
    ExitCode::FAILURE
}
