//! Test utilities shared by several crates: an agent client, built programs, private networks, measurements.
//!
//! - For tests only: it panics when a test cannot continue, and no program contains it.
//! - Depends on none of our crates, so that each can use it in tests, and changing one recompiles nothing here.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot continue fails at once"
)]

pub mod client;
pub mod figures;
pub mod namespace;
pub mod outside;
mod process;
pub mod programs;
pub mod wait;

pub use process::JsonProcess;
