//! Seed of randomized tests.

use std::env;

/// Environment variable with the seed. `cargo xtask soak` sets a different one for each repetition.
pub const SEED: &str = "IRONCURTAIN_TEST_SEED";

/// Returns the seed, or 1 if none is set.
///
/// # Panics
/// Panics if the variable is set but is not a number.
#[must_use]
pub fn seed() -> u64 {
    env::var(SEED).map_or(1, |seed| seed.parse().unwrap())
}

/// Returns `true` under `cargo xtask soak`, where tests may take minutes.
#[must_use]
pub fn is_soak() -> bool {
    env::var_os(SEED).is_some()
}

/// Pseudorandom number generator (xorshift) with a reproducible sequence.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must never be 0, and similar seeds should soon produce different numbers.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next number, which is less than `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
