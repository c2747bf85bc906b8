//! Waits for conditions by polling with a timeout.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Shortest and longest pause between checks of a condition. In between, a pause is an eighth of the time waited so far,
/// so that long waits leave the processors to what they wait for.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(40));

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
    let began = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        let waited = began.elapsed();
        assert!(waited < within, "timed out after {within:?} waiting for: {what}");
        sleep((waited / 8).clamp(PAUSES.0, PAUSES.1));
    }
}
