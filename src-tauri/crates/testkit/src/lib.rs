//! Utilities for the tests of several crates: an agent client, built programs, private networks, and
//! measurements.
//!
//! - For tests only: functions panic when a test cannot continue, and no shipped program contains this crate.
//! - Depends on no other IronCurtain crate, so that every crate can use it in its tests and a change in one
//!   does not recompile it.

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
