//! Stub for platforms that have no boot id; nothing starts there.

use super::Moment;
use std::convert::Infallible;
use std::io;

pub(super) fn boot_id() -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the time since boot, which is unknown here.
pub(super) fn boot_ms() -> u64 {
    0
}

/// Timers of an unavailable clock.
#[derive(Debug)]
pub(super) struct Timers(Infallible);

impl Timers {
    pub(super) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set(&self, _: Moment) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) async fn rung(&self) {
        match self.0 {}
    }
}
