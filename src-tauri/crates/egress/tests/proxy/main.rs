//! Black-box tests of the proxy: real and hostile programs connect through it, and the tests check which bytes arrive.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod asking;
mod bounds;
mod fixture;
mod http;
mod namespace;
mod outside;
mod programs;
mod socks;
mod ssh;
mod tls;
mod tun;
