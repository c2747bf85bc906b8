//! Upper bounds on the number of requests in one second. A thundering herd would exceed them.

use super::site::Traffic;

/// Probability that a fleet without a thundering herd exceeds a bound in any second of a period.
const ERROR: f64 = 1e-9;

/// Returns the maximum number of requests in any of `seconds` seconds, if the desktops decide independently and send at
/// most `mean` requests per second on average.
///
/// Mean: a desktop draws each pause from the range L/2 to L. Two of its requests are therefore at least L/2 apart, so
/// exactly one of its pauses can end at a given moment: the one that started between L and L/2 earlier. The density of
/// the end of a pause is at most 2/L, whenever the pause started. In any second, D desktops therefore send at most 2D/L
/// requests on average, even if one event made all of them start their pauses at the same moment.
///
/// Maximum: the number is a sum of independent decisions, so Chernoff's bound limits the probability of at least n
/// requests to `exp(n - mean - n ln(n / mean))`. The result is the smallest n for which this is at most [`ERROR`] for
/// all seconds together.
pub fn maximum(mean: f64, seconds: usize) -> u64 {
    let allowed = (ERROR / seconds as f64).ln();
    let is_rare = |n: &u64| {
        let n = *n as f64;
        n > mean && n - mean - n * (n / mean).ln() <= allowed
    };
    (1..).find(is_rare).unwrap_or(u64::MAX)
}

/// Request statistics for a period.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Mean number of requests per second.
    pub mean: f64,
    /// Number of requests in the busiest second.
    pub busiest: u64,
    /// Bound on `busiest`.
    pub bound: u64,
}

impl Load {
    /// Counts the requests without checking a bound.
    pub fn counted(requests: &[u64]) -> Self {
        let busiest = requests.iter().copied().max().unwrap_or_default();
        Self { mean: requests.iter().sum::<u64>() as f64 / requests.len() as f64, busiest, bound: u64::MAX }
    }

    /// Counts the requests and checks the bound. A desktop sends at most `together` requests at the same moment.
    pub fn checked(what: &str, requests: &[u64], mean: f64, together: u64) -> Self {
        let bound = together * maximum(mean / together as f64, requests.len());
        let load = Self { bound, ..Self::counted(requests) };
        let busiest = load.busiest;
        assert!(busiest <= bound, "thundering herd, {what}: {busiest} requests in one second, bound {bound}");
        load
    }
}

/// Returns the number of requests in each second.
pub fn requests(seconds: &[Traffic]) -> Vec<u64> {
    seconds.iter().map(|second| second.requests).collect()
}

/// Returns the number of connection attempts in each second.
pub fn connections(seconds: &[Traffic]) -> Vec<u64> {
    seconds.iter().map(|second| second.connections).collect()
}
