//! Test utilities for several crates: an agent client, built programs, private networks, seeds and measurements.
//!
//! - For tests only: functions panic when a test cannot continue, and no shipped program contains this crate.
//! - Depends on no other IronCurtain crate, so every crate can use it in tests, and changes elsewhere do not recompile
//!   it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot continue fails at once"
)]

pub mod client;
pub mod external_servers;
pub mod measurements;
pub mod namespace;
mod process;
pub mod programs;
pub mod seed;
pub mod wait;

pub use process::JsonProcess;
