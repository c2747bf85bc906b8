//! Tests the tools for policy authors through the public API.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

mod differences;
mod linting;
mod proposals;
#[path = "../../../policy/tests/judging/scene.rs"]
#[expect(dead_code, reason = "the judge's own tests use more of it")]
mod scene;
