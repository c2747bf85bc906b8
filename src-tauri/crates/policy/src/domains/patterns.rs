//! Lists of host patterns.

use super::{Destination, HostPattern, Site};

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
    pub(crate) fn cover(&self, destination: &Destination) -> bool {
        destination.site.as_ref().is_some_and(|site| self.cover_site(site))
    }

    /// Returns `true` if any pattern covers a host given as text.
    pub(crate) fn cover_host(&self, host: &str) -> bool {
        self.cover_site(&Site::new(host))
    }

    /// Returns `true` if any pattern's author may have meant a destination that the pattern does not cover.
    pub(crate) fn may_mean(&self, destination: &Destination) -> bool {
        self.0.iter().any(|pattern| pattern.may_mean(destination))
    }

    /// Returns `true` if any pattern's author may have meant a host, given as text, that the pattern does not cover.
    pub(crate) fn may_mean_host(&self, host: &str) -> bool {
        self.0.iter().any(|pattern| pattern.may_mean_host(host))
    }

    fn cover_site(&self, site: &Site) -> bool {
        self.0.iter().any(|pattern| pattern.covers_site(site))
    }
}

impl FromIterator<HostPattern> for HostPatterns {
    fn from_iter<I: IntoIterator<Item = HostPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}
