//! `ironcurtain policy`, as built, in a home of its own.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod home;
mod looking;
mod record;
mod replaying;
mod starting;
