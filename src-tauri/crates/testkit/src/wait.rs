//! Waits for conditions by polling with a timeout.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Interval between checks of a condition.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `holds` returns `true`. `what` describes the condition in the panic message.
///
/// # Panics
/// Panics if the condition does not hold within the timeout.
#[track_caller]
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    until(what, within, || holds().then_some(()));
}

/// Waits until `poll` returns `Some` and returns the value. `what` describes the value in the panic message.
///
/// # Panics
/// Panics if `poll` returns no value within the timeout.
#[track_caller]
pub fn until<T>(what: &str, within: Duration, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out after {within:?} waiting for: {what}");
        sleep(PAUSE);
    }
}
