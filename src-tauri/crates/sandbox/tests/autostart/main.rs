//! Tests autostart protection with real folders, repositories and git. The tests write files in place of a sandbox.

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
