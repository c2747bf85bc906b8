//! Addresses that stand for names. Each sandbox has its own table.
//!
//! - The addresses are in 198.18.0.0/15, which is reserved for benchmarks, so they belong to no other machine.
//! - The table is bounded: the least recently used names are removed. An address is not reused before every other address
//!   of the range so that a program with an old address does not reach a different name.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;

/// Address of the resolver.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Address of the sandbox on the device.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Prefix length of the range that contains all of these addresses.
pub const NETWORK_BITS: u8 = 15;

const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
const LAST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);

/// Maximum number of names. Must be far smaller than the number of addresses.
const MAX_NAMES: usize = 8192;

/// Table of names and their addresses.
#[derive(Debug)]
pub(super) struct HostNames {
    addresses: HashMap<Rc<str>, Ipv4Addr>,
    names: HashMap<Ipv4Addr, NamedAddress>,
    /// Addresses in use, in the order in which they are considered for removal.
    eviction_queue: VecDeque<Ipv4Addr>,
    next: Ipv4Addr,
}

#[derive(Debug)]
struct NamedAddress {
    name: Rc<str>,
    /// `true` if the name was used since it was last considered for removal.
    is_recently_used: bool,
}

impl Default for HostNames {
    fn default() -> Self {
        let (addresses, names, eviction_queue) = Default::default();
        Self { addresses, names, eviction_queue, next: FIRST_ADDRESS }
    }
}

impl HostNames {
    /// Returns the address of a name. Adds the name if the table does not contain it.
    pub(super) fn address_of(&mut self, name: &str) -> Ipv4Addr {
        if let Some(address) = self.addresses.get(name).copied() {
            self.name_of(address);
            return address;
        }
        if self.names.len() >= MAX_NAMES {
            self.evict();
        }
        let (address, name) = (self.next_unused(), Rc::<str>::from(name));
        self.addresses.insert(name.clone(), address);
        self.names.insert(address, NamedAddress { name, is_recently_used: false });
        self.eviction_queue.push_back(address);
        address
    }

    /// Returns the name that has this address, if any.
    pub(super) fn name_of(&mut self, address: Ipv4Addr) -> Option<&str> {
        let named = self.names.get_mut(&address)?;
        named.is_recently_used = true;
        Some(&named.name)
    }

    /// Removes the first name that was not used recently.
    fn evict(&mut self) {
        while let Some(address) = self.eviction_queue.pop_front() {
            match self.names.get_mut(&address) {
                Some(named) if named.is_recently_used => {
                    named.is_recently_used = false;
                    self.eviction_queue.push_back(address);
                }
                Some(_) | None => {
                    let removed = self.names.remove(&address);
                    removed.and_then(|named| self.addresses.remove(&named.name));
                    return;
                }
            }
        }
    }

    fn next_unused(&mut self) -> Ipv4Addr {
        loop {
            let address = self.next;
            let following = Ipv4Addr::from(u32::from(address) + 1);
            self.next = if address == LAST_ADDRESS { FIRST_ADDRESS } else { following };
            if !self.names.contains_key(&address) {
                return address;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address() {
        let mut names = HostNames::default();
        let [a, b] = ["a.test", "b.test"].map(|name| names.address_of(name));
        assert_eq!([a, b], [FIRST_ADDRESS, Ipv4Addr::new(198, 18, 1, 1)]);
        assert_eq!(names.address_of("a.test"), a);
        assert_eq!(names.name_of(b), Some("b.test"));
        assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 1, 2)), None);
        for own in [RESOLVER, CLIENT] {
            assert_eq!(names.name_of(own), None);
        }
    }

    #[test]
    fn a_million_names_fill_only_the_table() {
        let mut names = HostNames::default();
        let kept = names.address_of("kept.test");
        let first = names.address_of("0.test");
        for number in 1..1_000_000 {
            let address = names.address_of(&format!("{number}.test"));
            assert!((FIRST_ADDRESS..=LAST_ADDRESS).contains(&address));
            assert_eq!(names.name_of(kept), Some("kept.test"), "a name in use stays");
        }
        assert_eq!([names.names.len(), names.addresses.len(), names.eviction_queue.len()], [MAX_NAMES; 3]);
        assert_ne!(names.name_of(first), Some("0.test"));
        let newest = names.address_of("999999.test");
        assert_eq!(names.name_of(newest), Some("999999.test"));
    }

    #[test]
    fn an_address_is_reused_only_after_all_others() {
        let mut names = HostNames::default();
        let first = names.address_of("first.test");
        let all = usize::try_from(u32::from(LAST_ADDRESS) - u32::from(FIRST_ADDRESS)).unwrap();
        assert!((1..=all).all(|number| names.address_of(&format!("{number}.test")) != first));
        assert_eq!(names.name_of(first), None);
        assert_eq!(names.address_of("later.test"), first);
    }
}
