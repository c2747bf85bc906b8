//! Tests `ironcurtain policy` in temporary home directories.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail like tests")]

mod errors;
mod following;
mod granted;
mod home;
mod looking;
mod printing;
mod record;
mod replaying;
mod starting;
