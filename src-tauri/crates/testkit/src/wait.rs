//! Waits for conditions by polling, with a timeout instead of fixed sleeps.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until a condition is true.
///
/// # Panics
/// Timed out.
#[track_caller]
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    until(what, within, || holds().then_some(()));
}

/// Waits until `look` returns a value.
///
/// # Panics
/// Timed out.
#[track_caller]
pub fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "timed out after {within:?} waiting for: {what}");
        sleep(PAUSE);
    }
}
