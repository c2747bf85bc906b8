//! Headless tests of the whole system: real shim, real daemon, real bubblewrap, real MCP servers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod agents;
mod aggregated_features;
mod aggregation;
mod annotating;
mod asking_servers;
mod attach;
mod audit_log;
mod autostart;
mod client;
mod comparison;
mod conformance;
mod containment;
mod denials_and_lockdown;
mod documented_commands;
mod git_remotes;
mod grant_scopes;
mod grants;
mod guarantees;
mod handover;
mod handshake;
mod hostile;
mod identities;
mod inspector;
mod killed_processes;
mod large_messages;
mod late_answers;
mod limits;
mod load;
mod machine;
mod managed;
mod memory;
mod message_validation;
mod metrics;
mod mount_stability;
mod network;
mod other_requests;
mod other_users;
mod package_installs;
mod passthrough;
mod path_tricks;
mod pipelined_calls;
mod policy_commands;
mod pregrants;
mod private_etc;
mod protected;
mod protocol;
mod question_abuse;
mod question_content;
mod reachability;
mod record_export;
mod reference;
mod relay;
mod reloading;
mod remembered_tools;
mod remote_servers;
mod responses;
mod revocation;
mod run_agents;
mod run_exhaustion;
mod run_kills;
mod run_network;
mod run_profiles;
mod run_requests;
mod run_sessions;
mod run_ssh;
mod run_terminal;
mod runs;
mod runs_changes;
mod runs_commands;
mod runs_locks;
mod runs_mounts;
mod runs_paused;
mod runs_questions;
mod runs_reading;
mod runs_undo;
mod sampling;
mod scripted;
mod scripted_user;
mod sdk;
mod secret_file;
mod secrets;
mod servers;
mod servers_add;
mod servers_add_messages;
mod sessions;
mod shutdown;
mod stateless;
mod tasks;
mod terminal;
mod test_home;
mod tool_pins;
mod unannotated;
mod untrusted_snippets;
mod visibility;
mod wall_clock;
mod work_sessions;
mod workspace;
mod world;
