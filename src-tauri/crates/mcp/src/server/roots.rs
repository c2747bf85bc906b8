//! The answer to `roots/list`.

use serde::Serialize;
use std::fmt;

/// The roots reported to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RootList {
    /// Increases with every change.
    #[serde(skip)]
    pub version: u64,
    /// The roots, in order.
    pub roots: Vec<Root>,
}

/// One root, as defined by MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// Display name.
    pub name: String,
}

/// Supplies the roots when a server asks for them.
pub trait RootsSource: fmt::Debug + Send + Sync {
    /// Returns the current roots.
    fn roots(&self) -> RootList;
}

/// A fixed list of roots, for tests.
#[cfg(any(test, feature = "fuzzing"))]
impl RootsSource for RootList {
    fn roots(&self) -> RootList {
        self.clone()
    }
}
