//! Pauses between export attempts: exponential backoff with jitter, or the pause that the collector requests.
//!
//! - INVARIANT: every pause is random, and its range is at least half as wide as its shortest pause. Devices whose
//!   pauses start at the same moment, for example because the collector restarts, therefore do not retry at the same
//!   moment.

use ring::rand::{SecureRandom, SystemRandom};
use std::time::Duration;

/// Maximum pause before the second attempt.
const MIN_LIMIT: Duration = Duration::from_secs(1);

/// Maximum pause that the exporter chooses itself.
const MAX_DURATION: Duration = Duration::from_secs(5 * 60);

/// Maximum pause that a collector can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// Backoff state for consecutive failures.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Resets the backoff after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the next pause. `retry_after` is the collector's `Retry-After`, and `random` is a number from 0 to 1.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>, random: f64) -> Duration {
        let max = MIN_LIMIT.saturating_mul(2_u32.saturating_pow(self.failures)).min(MAX_DURATION);
        self.failures = self.failures.saturating_add(1);
        let pause = spread(max, random);
        // A collector can ask all devices to wait until the same moment, such as the end of its maintenance.
        retry_after.map_or(pause, |retry_after| {
            retry_after.min(MAX_RETRY_AFTER).mul_f64(1.0 + random / 2.0).max(pause)
        })
    }
}

/// Returns a random pause from half of `max` to `max`. `random` is a number from 0 to 1.
#[must_use]
pub fn spread(max: Duration, random: f64) -> Duration {
    max.mul_f64(0.5 + random / 2.0)
}

/// Returns a random number from 0 to 1.
#[must_use]
pub fn random() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness, the pause has no jitter.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of desktops that lose their collector at the same moment.
    const DESKTOPS: usize = 10_000;

    #[test]
    fn desktops_return_spread_after_an_outage_of_an_hour() {
        let outage = Duration::from_secs(60 * 60);
        let mut per_second = std::collections::BTreeMap::<u64, u64>::new();
        for _ in 0..DESKTOPS {
            let (mut backoff, mut now) = (Backoff::default(), Duration::ZERO);
            while now < outage {
                now += backoff.next(None, random());
            }
            *per_second.entry(now.as_secs()).or_default() += 1;
        }
        let (first, last) = (*per_second.keys().next().unwrap(), *per_second.keys().last().unwrap());
        assert!(
            last - first <= MAX_DURATION.as_secs(),
            "all return within the longest pause: {first} to {last}"
        );
        let peak = per_second.values().max().unwrap();
        // Without jitter, all devices return in the same second. With returns spread evenly over half of the longest
        // pause, 67 devices return per second.
        assert!(*peak <= 134, "{peak} desktops return in the same second");
    }

    #[test]
    fn pauses_grow_to_a_limit_and_respect_the_collector() {
        let mut backoff = Backoff::default();
        let mut max = MIN_LIMIT;
        for _ in 0..40 {
            let pause = backoff.next(None, random());
            assert!(pause >= max / 2 && pause <= max, "{pause:?} of {max:?}");
            max = (max * 2).min(MAX_DURATION);
        }
        backoff.reset();
        assert!(backoff.next(None, 1.0) <= MIN_LIMIT);
        let retry_after = Some(Duration::from_secs(90));
        let pauses = [0.0, 0.5, 1.0].map(|random| backoff.next(retry_after, random).as_secs_f64());
        assert_eq!(pauses, [90.0, 112.5, 135.0], "devices with the same `Retry-After` return spread");
        assert_eq!(backoff.next(Some(Duration::from_secs(9_999_999)), 0.0), MAX_RETRY_AFTER);
        backoff.reset();
        assert!(
            backoff.next(Some(Duration::ZERO), 0.0) >= MIN_LIMIT / 2,
            "a collector cannot ask for a flood"
        );
    }
}
