//! Stub for platforms without a boot id. The trusted process does not start on these platforms.

use super::Moment;
use std::convert::Infallible;
use std::io;

pub(super) fn boot_id() -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns 0, because the time since boot is unknown on this platform.
pub(super) fn boot_ms() -> u64 {
    0
}

/// Timers that cannot be created on this platform.
#[derive(Debug)]
pub(super) struct Timers(Infallible);

impl Timers {
    pub(super) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set(&self, _: Moment) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) async fn fired(&self) {
        match self.0 {}
    }
}
