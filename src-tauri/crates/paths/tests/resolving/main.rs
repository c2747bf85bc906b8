//! Resolving real paths on a real disk.

#[cfg(target_os = "linux")]
mod forest;
mod spelling;
#[cfg(unix)]
mod traps;
