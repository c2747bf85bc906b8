//! Display tests: the dialog, tray and window on a private screen, controlled with keys, clicks and AT-SPI.
//!
//! - Each test starts its own X server, session bus and window manager, so that tests do not affect each other.
//! - A missing program fails the test with the program's name. No test is skipped.
//! - Tests wait for visible conditions with a timeout, not for fixed times.

#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod accessibility;
mod accessible;
mod app;
mod arming;
mod batch_dialog;
mod bus;
mod dialog;
mod dialog_content;
mod harness;
mod input_races;
mod lifecycle;
mod measurements;
mod notifications;
mod pictures;
mod revoke_clicks;
mod screen;
mod scrolling;
mod server_identity;
mod server_maintenance;
mod tray;
mod tray_item;
mod webdriver;
mod window;
mod window_managers;
mod window_process;
