//! Shipped files: the default policy and the annotations of the filesystem server.

/// Default policy: allows access to the session sandbox and requires approval for everything else.
pub const POLICY_JSON: &str = include_str!("../defaults/compiled-policy.json");

/// Annotations of the filesystem server's tools.
pub const ANNOTATIONS_JSON: &str = include_str!("../defaults/tool-annotations.json");
