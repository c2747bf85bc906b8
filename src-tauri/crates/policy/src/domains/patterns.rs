//! Lists of host patterns.

use super::{Destination, HostPattern, HostTarget};

/// List of host patterns. A target matches if any pattern covers it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostPatterns(Vec<HostPattern>);

impl HostPatterns {
    /// Returns the patterns in the given order.
    #[must_use]
    pub fn all(&self) -> &[HostPattern] {
        &self.0
    }

    /// Returns `true` if any pattern covers a destination.
    pub(crate) fn covers(&self, destination: &Destination) -> bool {
        destination.target.as_ref().is_some_and(|target| self.covers_target(target))
    }

    /// Returns `true` if any pattern covers a host given as text.
    pub(crate) fn covers_host(&self, host: &str) -> bool {
        self.covers_target(&HostTarget::parse(host))
    }

    /// Returns `true` if any pattern's author may have meant a destination that the pattern does not cover.
    pub(crate) fn may_match(&self, destination: &Destination) -> bool {
        self.0.iter().any(|pattern| pattern.may_match(destination))
    }

    /// Returns `true` if any pattern's author may have meant a host, given as text, that the pattern does not cover.
    pub(crate) fn may_match_host(&self, host: &str) -> bool {
        self.0.iter().any(|pattern| pattern.may_match_host(host))
    }

    fn covers_target(&self, target: &HostTarget) -> bool {
        self.0.iter().any(|pattern| pattern.covers_target(target))
    }
}

impl FromIterator<HostPattern> for HostPatterns {
    fn from_iter<I: IntoIterator<Item = HostPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}
