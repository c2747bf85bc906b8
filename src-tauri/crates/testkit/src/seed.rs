//! The seed of random tests.

use std::env;

/// Variable with the seed. `cargo xtask soak` sets another one for each repetition.
pub const SEED: &str = "IRONCURTAIN_TEST_SEED";

/// Returns the seed, 1 if none is set.
///
/// # Panics
/// Panics if the variable has another value than a number.
#[must_use]
pub fn seed() -> u64 {
    env::var(SEED).map_or(1, |seed| seed.parse().unwrap())
}

/// Returns `true` in `cargo xtask soak`, where a test may take minutes.
#[must_use]
pub fn is_soak() -> bool {
    env::var_os(SEED).is_some()
}

/// Pseudorandom numbers (xorshift), the same for the same seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Never 0, which would stay 0, and different from the start for similar seeds.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
