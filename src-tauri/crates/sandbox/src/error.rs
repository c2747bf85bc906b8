//! Launch errors.

use std::io;

use crate::spec::SpecError;

/// Failure to launch a sandbox. Later failures are reported as [`SandboxEvent::Failed`](crate::SandboxEvent::Failed).
#[derive(Debug, thiserror::Error)]
pub enum SandboxLaunchError {
    /// The specification is invalid, so nothing was started.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The supervisor program could not be started.
    #[error("failed to start the sandbox program `{program}`: {source}")]
    Start {
        /// Path of the supervisor program.
        program: String,
        /// Operating system error.
        source: io::Error,
    },
    /// A descriptor, thread or pipe could not be created.
    #[error("failed to prepare the sandbox: {0}")]
    Prepare(#[from] io::Error),
    /// Sandboxes are not supported on this platform.
    #[error("sandboxing is not supported on this platform, so servers cannot start; use Linux")]
    Unsupported,
}
