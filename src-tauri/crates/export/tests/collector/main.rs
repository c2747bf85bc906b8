//! Tests the export to collectors that behave correctly, misbehave, or do not respond.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod backlog;
mod fake_collector;
mod full_disk;
mod hostile;
mod refusals;
mod stage;
