//! The whole system, headless: real shim, real daemon, real bubblewrap, real MCP servers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod adding;
mod agents;
mod annotating;
mod answers;
mod behind;
mod client;
mod clocks;
mod comparing;
mod conformance;
mod consent;
mod contained;
mod ending;
mod giants;
mod giving;
mod grants;
mod greeting;
mod hostile;
mod identities;
mod inspector;
mod installs;
mod introductions;
mod killing;
mod late;
mod later;
mod limits;
mod looking;
mod machine;
mod many;
mod memory;
mod metrics;
mod modern;
mod network;
mod passing;
mod pestering;
mod pieces;
mod place;
mod protected;
mod question;
mod reaching;
mod record;
mod reference;
mod relaying;
mod reloading;
mod remote_servers;
mod remotes;
mod requests;
mod revoking;
mod sampling;
mod scopes;
mod scripted;
mod sdk;
mod secret_file;
mod secrets;
mod servers;
mod sessions;
mod sight;
mod standing;
mod stopping;
mod story;
mod strangers;
mod taking_over;
mod tasks;
mod telling;
mod together;
mod tricks;
mod typed;
mod unannotated;
mod wire;
mod work;
mod workspace;
mod world;
