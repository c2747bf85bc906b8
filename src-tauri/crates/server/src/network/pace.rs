//! Limits the rate at which a server can cause audit entries, which could otherwise fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Maximum number of requests that pass without delay.
const BURST: u32 = 100;

/// Interval between requests after the burst.
const STEP: Duration = Duration::from_millis(50);

/// Rate limiter that permits bursts.
pub(super) struct Pace {
    /// Time at which the steady rate alone would have admitted all requests so far.
    paid: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { paid: Mutex::new(Instant::now()) }
    }

    /// Waits until the next request may proceed.
    pub(super) async fn turn(&self) {
        let due = {
            let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
            *paid = (*paid).max(Instant::now()) + STEP;
            *paid
        };
        sleep_until(due.checked_sub(STEP * BURST).unwrap_or(due)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_after_a_burst_wait() {
        let (pace, began) = (Pace::new(), Instant::now());
        for _ in 0..BURST {
            pace.turn().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            pace.turn().await;
        }
        assert_eq!(began.elapsed(), STEP * 20);
        tokio::time::advance(STEP * 30).await;
        let resumed = Instant::now();
        for _ in 0..30 {
            pace.turn().await;
        }
        assert_eq!(resumed.elapsed(), Duration::ZERO);
    }
}
