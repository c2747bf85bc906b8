//! Errors of launching a sandbox.

use std::io;

use crate::spec::SpecError;

/// The reasons why a sandbox is not launched. A refusal after launch arrives as [`SandboxEvent::Failed`](crate::SandboxEvent::Failed).
#[derive(Debug, thiserror::Error)]
pub enum SandboxLaunchError {
    /// The spec cannot be carried out.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The supervisor program could not be started.
    #[error("the sandbox program `{program}` could not be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Descriptors, threads or pipes could not be had.
    #[error("the sandbox could not be prepared: {0}")]
    Prepare(#[from] io::Error),
    /// There is no sandbox on this platform.
    #[error("IronCurtain has no sandbox for this system, so no server starts here; run it on Linux")]
    Unsupported,
}
