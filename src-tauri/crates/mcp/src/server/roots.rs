//! Roots, and the response to `roots/list`.

use serde::Serialize;
use std::fmt;

/// Roots that are sent to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RootList {
    /// Version number, which increases with every change.
    #[serde(skip)]
    pub version: u64,
    /// Roots in the order in which the server receives them.
    pub roots: Vec<Root>,
}

/// Root directory, as defined by MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// `file` URI of the root.
    pub uri: String,
    /// Name for display.
    pub name: String,
}

/// Source of the roots.
pub trait RootsSource: fmt::Debug + Send + Sync {
    /// Returns the current roots.
    fn roots(&self) -> RootList;
}

/// A constant source of roots, for tests.
#[cfg(any(test, feature = "fuzzing"))]
impl RootsSource for RootList {
    fn roots(&self) -> RootList {
        self.clone()
    }
}
