//! Data needed to make a plan.

use crate::home::Home;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::ProtectedPaths;
use std::path::Path;

/// Data needed to make a plan, in addition to the profile.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// IronCurtain's own directories.
    pub ours: &'a Home,
    /// The user's home directory.
    pub home: &'a CanonicalPath,
    /// Currently protected paths.
    pub protected: &'a ProtectedPaths,
    /// Working directory of the run.
    pub cwd: &'a Path,
    /// Value of `PATH` in the run.
    pub path: &'a str,
    /// Program of the run and its arguments.
    pub argv: &'a [String],
    /// Absolute path of `ironcurtain-shim`.
    pub shim: &'a Path,
}
