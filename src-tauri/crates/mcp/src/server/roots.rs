//! The answer to `roots/list`.

use serde::Serialize;
use std::fmt;

/// The roots that a server is told of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RootList {
    /// Grows with every change of the roots.
    #[serde(skip)]
    pub version: u64,
    /// The roots.
    pub roots: Vec<Root>,
}

/// One root, as the protocol has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// Its `file:` URI.
    pub uri: String,
    /// Its name.
    pub name: String,
}

/// Supplies the roots when a server asks for them.
pub trait RootsSource: fmt::Debug + Send + Sync {
    /// Returns the roots as they are now.
    fn roots(&self) -> RootList;
}

/// Roots that do not change.
#[cfg(any(test, feature = "fuzzing"))]
impl RootsSource for RootList {
    fn roots(&self) -> RootList {
        self.clone()
    }
}
