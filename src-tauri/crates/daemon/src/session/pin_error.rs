//! Error type for comparing a server's tools with their pinned definitions.

use ironcurtain_grants::{MAX_TOOLS, StoreError};
use tokio::task::JoinError;

/// Reason why a tool list cannot be compared with the pinned definitions.
#[derive(Debug, thiserror::Error)]
pub(super) enum PinError {
    #[error("failed to parse the list of tools: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the server lists more than {MAX_TOOLS} tools")]
    TooMany,
    #[error("failed to compare the tools with their pins: {0}")]
    Store(#[from] StoreError),
    #[error("failed to compare the tools with their pins: {0}")]
    Aborted(#[from] JoinError),
}
