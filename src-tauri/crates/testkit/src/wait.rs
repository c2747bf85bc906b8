//! Waiting for what is about to be so, with a bound: nothing sleeps and hopes.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until something holds.
///
/// # Panics
/// When it does not hold within the bound.
#[track_caller]
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    until(what, within, || holds().then_some(()));
}

/// Waits for something that can be seen.
///
/// # Panics
/// When it is not seen within the bound.
#[track_caller]
pub fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {within:?}");
        sleep(PAUSE);
    }
}
