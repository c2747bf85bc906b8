//! The things that tests and benches of several crates share: an agent client, programs as built, a network of their own,
//! figures.
//!
//! - For tests only: it panics where a test cannot go on, and no program contains it.
//! - Knows none of our crates, so that each can be tested with it, and a change of one compiles nothing here.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails there and then"
)]

pub mod client;
pub mod figures;
pub mod namespace;
pub mod outside;
mod process;
pub mod programs;
pub mod wait;

pub use process::JsonProcess;
