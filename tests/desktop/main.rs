//! Display tests: the real dialog, tray and window on a screen of their own, driven by keys, clicks and AT-SPI.
//!
//! - Each test starts its own X server, session bus and window manager, so tests do not see one another.
//! - A missing program fails the test with its name; nothing is skipped.
//! - Nothing sleeps and hopes: every wait is for something that can be seen, with a bound.

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
mod server_identity;
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
