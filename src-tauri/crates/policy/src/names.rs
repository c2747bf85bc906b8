//! A map from names that is built once and asked often.
//!
//! - Sorted by the first bytes of each name, taken as a number: most comparisons are of two numbers.
//! - Needs no hashing, so that whoever chooses the names asked about cannot make asking slow.

use crate::SharedStr;

/// Names and what belongs to each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Names<T> {
    /// The start of each name, ascending: what is looked through is small and lies together.
    starts: Vec<u64>,
    /// INVARIANT: sorted by name, as long as `starts`.
    entries: Vec<(SharedStr, T)>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> Names<T> {
    /// No names.
    pub(crate) const NONE: Self = Self { starts: Vec::new(), entries: Vec::new() };

    /// What belongs to a name.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.find(name).map(|(_, value)| value)
    }

    /// A name as it is kept, and what belongs to it.
    pub(crate) fn find(&self, name: &str) -> Option<(&SharedStr, &T)> {
        let start = start_of(name);
        let first = self.starts.partition_point(|other| *other < start);
        let alike = self.starts.get(first..)?;
        let entries = self.entries.get(first..)?;
        let at = match (alike, entries) {
            ([other, ..], _) if *other != start => return None,
            (_, [(known, _), ..]) if is_same(known, name) => 0,
            _ => {
                let alike = alike.partition_point(|other| *other == start);
                let entries = entries.get(..alike)?;
                entries.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?
            }
        };
        entries.get(at).map(|(known, value)| (known, value))
    }

    /// All of them, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SharedStr, &T)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    /// Whether the name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T: Default> Names<T> {
    /// What belongs to a name, made when there is nothing yet.
    pub(crate) fn entry(&mut self, name: &str) -> Option<&mut T> {
        let place = self.entries.binary_search_by(|(known, _)| known.as_str().cmp(name));
        let at = place.unwrap_or_else(|at| {
            self.starts.insert(at, start_of(name));
            self.entries.insert(at, (name.into(), T::default()));
            at
        });
        self.entries.get_mut(at).map(|(_, value)| value)
    }
}

/// Whether two names that start alike are the same: short ones need no look at what follows.
fn is_same(known: &str, name: &str) -> bool {
    known.len() == name.len() && (name.len() <= size_of::<u64>() || known == name)
}

/// The first eight bytes as a number that sorts as they do; a shorter name ends in zeros.
fn start_of(name: &str) -> u64 {
    let bytes = name.as_bytes();
    match (bytes.first_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
        (Some(all), _, _) => u64::from_be_bytes(*all),
        // The last four bytes are the rest of them and, before it, some of the first four again.
        (None, Some(first), Some(last)) => {
            let rest =
                u32::from_be_bytes(*last).checked_shl(8 * (8 - bytes.len() as u32)).unwrap_or_default();
            (u64::from(u32::from_be_bytes(*first)) << 32) | u64::from(rest)
        }
        (None, _, _) => {
            let number = bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
            number << (8 * (8 - bytes.len()).min(7))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn starts_sort_as_names_do() {
        let names = ["", "a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "b", "ba", "\u{e9}"];
        assert!(names.is_sorted());
        assert!(names.map(start_of).is_sorted());
        assert_ne!(start_of("a"), start_of("b"));
    }

    proptest! {
        #[test]
        fn it_is_a_map(names in prop::collection::vec("[ab\0é]{0,12}", 0..20), asked in "[ab\0é]{0,12}") {
            let mut ours: Names<usize> = Names::default();
            let mut std: BTreeMap<String, usize> = BTreeMap::new();
            for name in &names {
                *ours.entry(name).unwrap() += 1;
                *std.entry(name.clone()).or_default() += 1;
            }
            for name in names.iter().chain([&asked]) {
                prop_assert_eq!(ours.get(name), std.get(name));
                prop_assert_eq!(ours.has(name), std.contains_key(name));
                prop_assert_eq!(ours.find(name).map(|(name, _)| name.to_string()), std.get_key_value(name).map(|(name, _)| name.clone()));
            }
            prop_assert_eq!(ours.is_empty(), std.is_empty());
        }
    }
}
