//! Random numbers that are the same in each run.

/// SplitMix64 generator.
pub struct Random(u64);

impl Random {
    /// Creates a generator for one desktop and one purpose.
    pub fn new(desktop: usize, purpose: u64) -> Self {
        Self((desktop as u64) << 8 | purpose)
    }

    /// Returns a number from 0 to 1, excluding 1.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
