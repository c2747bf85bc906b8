//! No clock and no timer, for systems where nothing says which start of the machine this is: nothing starts there.

use super::Moment;
use std::convert::Infallible;
use std::io;

pub(super) fn boot_id() -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The time since the start, which is not known here either.
pub(super) fn boot_ms() -> u64 {
    0
}

/// Timers of a clock that is not there.
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
