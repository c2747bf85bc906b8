//! Times of virtual entries.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the Unix epoch, and nanoseconds.
pub(crate) type Time = (i64, i64);

/// Times of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VirtualTimes {
    pub(crate) accessed: Time,
    pub(crate) modified: Time,
    /// Time of the last attribute change.
    pub(crate) changed: Time,
}

impl VirtualTimes {
    pub(crate) fn now() -> Self {
        let now = now();
        Self { accessed: now, modified: now, changed: now }
    }
}

/// Returns the current time.
pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs().cast_signed(), now.subsec_nanos().into())
}
