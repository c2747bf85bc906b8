//! The paths that no agent touches, whatever the policy says.

use ironcurtain_paths::CanonicalPath;

/// Below the home: each with why.
const IN_HOME: &[&str] = &[".ssh", ".gnupg", ".aws"];

/// The protected paths for a person with this home. Spelled, not resolved: the caller resolves each and protects both.
#[must_use]
pub fn protected(home: &CanonicalPath) -> Vec<CanonicalPath> {
    IN_HOME.iter().filter_map(|below| home.join(below).ok()).collect()
}
