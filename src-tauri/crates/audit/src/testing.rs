//! Logs for unit tests.

use crate::LOG_NAME;
use std::path::Path;
use tempfile::TempDir;

/// Creates a log in the format of an earlier version, with the previous hash in every line.
pub(crate) fn old_log() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/without-grounds.jsonl");
    std::fs::copy(fixture, dir.path().join(LOG_NAME)).unwrap();
    dir
}
