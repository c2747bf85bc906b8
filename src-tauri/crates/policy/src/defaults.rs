//! Shipped files: the default policy, and the annotations of the filesystem server.

/// Default compiled policy: the session sandbox is free, everything else asks.
pub const POLICY_JSON: &str = include_str!("../defaults/compiled-policy.json");

/// Annotations of the filesystem server's tools.
pub const ANNOTATIONS_JSON: &str = include_str!("../defaults/tool-annotations.json");
