//! Many patterns, asked as one.

use super::{Destination, Pattern, Place};
use crate::names::Names;

/// Patterns, found by the names in them: a list of hosts has hundreds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Patterns {
    all: Vec<Pattern>,
    any: bool,
    exact: Names<()>,
    below: Names<()>,
}

impl Patterns {
    /// Each pattern, in the order they were given.
    #[must_use]
    pub fn all(&self) -> &[Pattern] {
        &self.all
    }

    /// Whether one of them covers the place a value leads to.
    pub(crate) fn cover(&self, destination: &Destination) -> bool {
        destination.place.as_ref().is_some_and(|place| self.cover_place(place))
    }

    /// Whether one of them covers a host given as text.
    pub(crate) fn cover_host(&self, host: &str) -> bool {
        self.cover_place(&Place::new(host))
    }

    /// Whether one of them may be meant for where a value leads, which none covers.
    pub(crate) fn may_mean(&self, destination: &Destination) -> bool {
        self.all.iter().any(|pattern| pattern.may_mean(destination))
    }

    /// Whether one of them may be meant for a host given as text, which none covers.
    pub(crate) fn may_mean_host(&self, host: &str) -> bool {
        self.all.iter().any(|pattern| pattern.may_mean_host(host))
    }

    fn cover_place(&self, place: &Place) -> bool {
        let host = place.host();
        (self.any && Pattern::Any.covers_place(place))
            || (!host.is_empty() && self.exact.has(host))
            || (place.domain.len() > host.len() && self.exact.has(&place.domain))
            || (place.has_name() && self.has_parent_of(host))
    }

    /// Whether the host or one that it is below of is among the parents.
    fn has_parent_of(&self, host: &str) -> bool {
        if self.below.is_empty() {
            return false;
        }
        // Bytes are looked through faster than characters, and a dot is one byte.
        let dots = host.bytes().enumerate().filter(|(at, byte)| *byte == b'.' && *at > 0);
        let mut parents = dots.filter_map(|(dot, _)| host.get(dot + 1..));
        let is_kept = |parent: &str| !parent.is_empty() && self.below.has(parent);
        is_kept(host) || parents.any(is_kept)
    }
}

impl FromIterator<Pattern> for Patterns {
    fn from_iter<I: IntoIterator<Item = Pattern>>(patterns: I) -> Self {
        let mut patterns = Self { all: patterns.into_iter().collect(), ..Self::default() };
        for pattern in &patterns.all {
            match pattern {
                Pattern::Any => patterns.any = true,
                Pattern::Exact(place) => drop(patterns.exact.entry(place)),
                Pattern::Below(parent) => drop(patterns.below.entry(parent)),
            }
        }
        patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host() -> impl Strategy<Value = String> {
        let odd =
            prop::sample::select(vec!["", ".", "..d", ".d", "127.0.0.1", "[::1]", "localhost", "a.local"]);
        prop_oneof![4 => "[abd]{1,2}(\\.[abd]{1,2}){0,3}", 1 => odd.prop_map(str::to_owned)]
    }

    fn place() -> impl Strategy<Value = String> {
        prop_oneof![3 => host(), 1 => host().prop_map(|host| format!("{host}/o/r"))]
    }

    fn pattern() -> impl Strategy<Value = String> {
        prop_oneof![3 => place(), 3 => host().prop_map(|host| format!("*.{host}")), 1 => Just("*".to_owned())]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
        #[test]
        fn many_cover_what_one_of_them_covers(
            patterns in prop::collection::vec(pattern(), 0..5), place in place(),
        ) {
            let all: Vec<Pattern> = patterns.iter().map(|text| Pattern::parse(text)).collect();
            let many: Patterns = all.iter().cloned().collect();
            let expected = all.iter().any(|pattern| pattern.covers(&place));
            prop_assert_eq!(many.cover_host(&place), expected);
            prop_assert_eq!(many.all(), all.as_slice());
        }
    }
}
