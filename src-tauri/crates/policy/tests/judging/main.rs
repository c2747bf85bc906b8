//! Tests the judge with whole calls through the public API.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

mod answers;
mod arguments;
mod commands;
mod composed;
mod domains;
mod doubt;
mod files;
mod layers;
mod loading;
mod managed;
mod peer;
mod properties;
mod reaching;
mod requests;
mod rules;
mod scene;
mod shipped;
mod strictly;
mod structure;
mod tool_grants;
mod unannotated;
