//! The files that ship: the policy, and the annotations of the filesystem server.

/// The default compiled policy: the session sandbox is free, everything else asks.
pub const POLICY_JSON: &str = include_str!("../defaults/compiled-policy.json");

/// The annotations of the filesystem server's tools.
pub const ANNOTATIONS_JSON: &str = include_str!("../defaults/tool-annotations.json");
