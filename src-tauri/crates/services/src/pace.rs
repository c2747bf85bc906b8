//! Limits the rate at which a sandboxed program can cause audit entries, which could otherwise fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Interval between requests after the burst.
const STEP: Duration = Duration::from_millis(50);

/// Rate limiter that permits bursts.
#[derive(Debug)]
pub struct Pace {
    /// Maximum number of requests that pass without delay.
    burst: u32,
    /// Time at which the steady rate alone would have admitted all requests so far.
    paid: Mutex<Instant>,
}

impl Pace {
    /// Creates a rate limiter that lets this many requests pass without delay.
    pub fn new(burst: u32) -> Self {
        Self { burst, paid: Mutex::new(Instant::now()) }
    }

    /// Counts a request, and waits until it may proceed.
    pub async fn turn(&self) {
        let due = {
            let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
            *paid = (*paid).max(Instant::now()) + STEP;
            *paid
        };
        sleep_until(due.checked_sub(STEP * self.burst).unwrap_or(due)).await;
    }

    /// Removes a request from the count.
    pub fn refund(&self) {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        *paid = paid.checked_sub(STEP).unwrap_or(*paid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_after_a_burst_wait() {
        const BURST: u32 = 100;
        let (pace, began) = (Pace::new(BURST), Instant::now());
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
        // A refunded request does not delay any other request.
        pace.turn().await;
        let refunded = Instant::now();
        for _ in 0..1000 {
            pace.refund();
            pace.turn().await;
        }
        assert_eq!(refunded.elapsed(), Duration::ZERO);
    }
}
