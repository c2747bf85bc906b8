//! A map from names that is built once and asked often.
//!
//! - Sorted by the first bytes of each name, taken as a number: most comparisons are of two numbers.
//! - Needs no hashing, so that whoever chooses the names asked about cannot make asking slow.

use crate::SharedStr;

/// Names and what belongs to each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Names<T>(Vec<Entry<T>>);

#[derive(Debug, Clone, PartialEq)]
struct Entry<T> {
    start: u64,
    name: SharedStr,
    value: T,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> Names<T> {
    /// No names.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// What belongs to a name.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.find(name).map(|(_, value)| value)
    }

    /// A name as it is kept, and what belongs to it.
    pub(crate) fn find(&self, name: &str) -> Option<(&SharedStr, &T)> {
        let at = self.place(name).ok()?;
        self.0.get(at).map(|entry| (&entry.name, &entry.value))
    }

    /// All of them, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SharedStr, &T)> {
        self.0.iter().map(|entry| (&entry.name, &entry.value))
    }

    /// Whether the name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        let start = start_of(name);
        self.0.binary_search_by(|entry| {
            entry.start.cmp(&start).then_with(|| match entry.name.len().max(name.len()) {
                // Of two names that fit into their numbers, the longer one has more NULs.
                ..=8 => entry.name.len().cmp(&name.len()),
                _ => entry.name.as_str().cmp(name),
            })
        })
    }
}

impl<T: Default> Names<T> {
    /// What belongs to a name, made when there is nothing yet.
    pub(crate) fn entry(&mut self, name: &str) -> Option<&mut T> {
        let at = self.place(name).unwrap_or_else(|at| {
            self.0.insert(at, Entry { start: start_of(name), name: name.into(), value: T::default() });
            at
        });
        self.0.get_mut(at).map(|entry| &mut entry.value)
    }
}

/// The first eight bytes as a number that sorts as they do.
fn start_of(name: &str) -> u64 {
    let bytes = name.as_bytes();
    match bytes.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
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
