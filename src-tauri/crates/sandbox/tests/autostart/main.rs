//! Tests of autostart files in real folders and repositories, with real git. The tests play the part of the sandbox.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod closed_modes;
mod closing;
mod configurations;
mod killed;
mod listing;
mod quarantining;
mod recreating;
mod referenced;
mod repositories;
mod scene;
