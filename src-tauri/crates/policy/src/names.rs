//! A map from names that is built once and asked often.
//!
//! - A table of places, found by what is in a name. It is made of the names that are kept and no others, so that whoever
//!   chooses the names asked about cannot make asking slow.
//! - Of a name up to 16 bytes long, its two ends are all of it: comparing is of three numbers.

use crate::SharedStr;

/// Names and what belongs to each.
#[derive(Debug, Clone)]
pub(crate) struct Names<T> {
    /// One more than the place of an entry, or 0.
    /// INVARIANT: none, or a power of two many, at most half of which have an entry.
    slots: Vec<usize>,
    entries: Vec<Entry<T>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry<T> {
    key: Key,
    name: SharedStr,
    value: T,
}

/// A name as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    len: usize,
}

/// The longest name that its key is all of.
const SHORT: usize = 16;
/// An odd number without a pattern: the golden ratio as a fraction of 2^64, as in Knuth's multiplicative hashing.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> Names<T> {
    /// No names.
    pub(crate) const NONE: Self = Self { slots: Vec::new(), entries: Vec::new() };

    /// What belongs to a name.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(self.find(name)?).map(|entry| &entry.value)
    }

    /// All of them, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SharedStr, &T)> {
        let mut sorted: Vec<&Entry<T>> = self.entries.iter().collect();
        sorted.sort_by(|one, other| one.name.as_str().cmp(&other.name));
        sorted.into_iter().map(|entry| (&entry.name, &entry.value))
    }

    /// Whether the name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The place of a name.
    fn find(&self, name: &str) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let key = Key::of(name);
        for slot in self.slots_from(key) {
            let place = self.slots.get(slot)?.checked_sub(1)?;
            let entry = self.entries.get(place)?;
            if entry.key == key && (name.len() <= SHORT || *entry.name == *name) {
                return Some(place);
            }
        }
        None
    }

    /// The slots in which a key may stand, the first free one of which ends the search.
    fn slots_from(&self, key: Key) -> impl Iterator<Item = usize> + use<T> {
        let mask = self.slots.len().wrapping_sub(1);
        (key.spread()..).map(move |slot| slot & mask)
    }

    /// Puts a place into the first free slot of its key.
    fn settle(&mut self, key: Key, place: usize) {
        for slot in self.slots_from(key) {
            match self.slots.get_mut(slot) {
                Some(free @ 0) => return *free = place + 1,
                Some(_) => {}
                None => return,
            }
        }
    }
}

impl<T: Default> Names<T> {
    /// What belongs to a name, made when there is nothing yet.
    pub(crate) fn entry(&mut self, name: &str) -> Option<&mut T> {
        let place = self.find(name).unwrap_or_else(|| self.add(name));
        self.entries.get_mut(place).map(|entry| &mut entry.value)
    }

    fn add(&mut self, name: &str) -> usize {
        let place = self.entries.len();
        let key = Key::of(name);
        self.entries.push(Entry { key, name: name.into(), value: T::default() });
        if self.entries.len() * 2 > self.slots.len() {
            self.slots = vec![0; (self.entries.len() * 2).next_power_of_two()];
            let keys: Vec<Key> = self.entries.iter().map(|entry| entry.key).collect();
            keys.into_iter().enumerate().for_each(|(place, key)| self.settle(key, place));
        } else {
            self.settle(key, place);
        }
        place
    }
}

/// The same names with the same values, in whatever order they came.
impl<T: PartialEq> PartialEq for Names<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Key {
    fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let len = bytes.len();
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let first = if len <= SHORT { u64::from_le_bytes(*first) } else { fold(bytes) };
            return Self { first, last: u64::from_le_bytes(*last), len };
        }
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            return Self { first, last, len };
        }
        let first = bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
        Self { first, last: 0, len }
    }

    /// Where in a table to look first: the upper bits of a product depend on all bits of what is multiplied.
    fn spread(self) -> usize {
        let product = (self.first ^ self.last.rotate_left(29) ^ self.len as u64).wrapping_mul(GOLDEN);
        (product >> 32) as usize
    }
}

/// All but the last bytes of a long name, of which its ends would tell too little.
fn fold(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(0, |folded: u64, word| {
        (folded.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(GOLDEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_short_name_is_its_key() {
        let names = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "abc",
            "abcd",
            "abcde",
            "abcdbcde",
            "abcdefgh",
            "abcdefghi",
            "abcdefghbcdefghi",
        ];
        for (at, name) in names.iter().enumerate() {
            for other in names.iter().skip(at + 1) {
                assert_ne!(Key::of(name), Key::of(other), "{name} {other}");
            }
        }
    }

    #[test]
    fn many_names_that_are_nearly_the_same_lie_apart() {
        let mut names: Names<()> = Names::default();
        for at in 0..4096 {
            names.entry(&format!("abcdefgh{at:04}-abcdefgh")).unwrap();
            names.entry(&format!("server-{at}")).unwrap();
        }
        let keys = names.entries.iter().map(|entry| entry.key);
        let steps =
            |key| names.slots_from(key).position(|slot| names.entries[names.slots[slot] - 1].key == key);
        assert!(keys.map(|key| steps(key).unwrap()).max().unwrap() < 64);
    }

    proptest! {
        #[test]
        fn it_is_a_map(names in prop::collection::vec("[ab\0é]{0,20}", 0..20), asked in "[ab\0é]{0,20}") {
            let mut ours: Names<usize> = Names::default();
            let mut std: BTreeMap<String, usize> = BTreeMap::new();
            for name in &names {
                *ours.entry(name).unwrap() += 1;
                *std.entry(name.clone()).or_default() += 1;
            }
            for name in names.iter().chain([&asked]) {
                prop_assert_eq!(ours.get(name), std.get(name));
                prop_assert_eq!(ours.has(name), std.contains_key(name));
            }
            prop_assert_eq!(ours.is_empty(), std.is_empty());
            let sorted: Vec<(&str, usize)> = ours.iter().map(|(name, count)| (name.as_str(), *count)).collect();
            prop_assert!(sorted.into_iter().eq(std.iter().map(|(name, count)| (name.as_str(), *count))));
        }
    }
}
