//! Display tests: the real dialog, tray and window on a private screen, driven by keys, clicks and AT-SPI.
//!
//! - Each test starts its own X server, session bus and window manager, so tests are independent.
//! - A missing program fails the test and is named; no test is skipped.
//! - There are no fixed sleeps: every wait has a visible condition and a bound.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod app;
mod arming;
mod dialog;
mod dialog_look;
mod figures;
mod life;
mod managers;
mod pictures;
mod races;
mod screen;
mod stand;
mod taking_back;
mod together;
mod tray;
mod upkeep;
mod webdriver;
mod wheel;
mod window;
mod window_access;
mod window_process;
