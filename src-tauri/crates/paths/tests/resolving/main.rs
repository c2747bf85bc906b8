//! Tests path resolution on a real file system.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[cfg(target_os = "linux")]
mod forest;
mod spelling;
#[cfg(unix)]
mod traps;
