//! Limits the rate at which a sandboxed program can cause audit entries, which could otherwise fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Interval between requests after the burst.
const INTERVAL: Duration = Duration::from_millis(50);

/// Rate limiter that permits bursts.
#[derive(Debug)]
pub struct RateLimiter {
    /// Maximum number of requests that pass without delay.
    burst: u32,
    /// Time at which the steady rate alone would have admitted all requests so far.
    steady_time: Mutex<Instant>,
}

impl RateLimiter {
    /// Creates a rate limiter that lets this many requests pass without delay.
    pub fn new(burst: u32) -> Self {
        Self { burst, steady_time: Mutex::new(Instant::now()) }
    }

    /// Counts a request and waits until it may proceed.
    pub async fn acquire(&self) {
        let due = {
            let mut steady_time = self.steady_time.lock().unwrap_or_else(PoisonError::into_inner);
            *steady_time = (*steady_time).max(Instant::now()) + INTERVAL;
            *steady_time
        };
        sleep_until(due.checked_sub(INTERVAL * self.burst).unwrap_or(due)).await;
    }

    /// Removes a request from the count.
    pub fn refund(&self) {
        let mut steady_time = self.steady_time.lock().unwrap_or_else(PoisonError::into_inner);
        *steady_time = steady_time.checked_sub(INTERVAL).unwrap_or(*steady_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_after_a_burst_wait() {
        const BURST: u32 = 100;
        let (pace, began) = (RateLimiter::new(BURST), Instant::now());
        for _ in 0..BURST {
            pace.acquire().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            pace.acquire().await;
        }
        assert_eq!(began.elapsed(), INTERVAL * 20);
        tokio::time::advance(INTERVAL * 30).await;
        let resumed = Instant::now();
        for _ in 0..30 {
            pace.acquire().await;
        }
        assert_eq!(resumed.elapsed(), Duration::ZERO);
        // A refunded request does not delay any other request.
        pace.acquire().await;
        let refunded = Instant::now();
        for _ in 0..1000 {
            pace.refund();
            pace.acquire().await;
        }
        assert_eq!(refunded.elapsed(), Duration::ZERO);
    }
}
