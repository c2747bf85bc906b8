//! Names by which an agent refers to the tools and prompts of several servers: `server__tool`.
//!
//! - A name consists of at most 60 letters, digits, `_` and `-`, which every agent client accepts.
//! - A name depends only on its server and tool, not on other servers or their order. A name that would be ambiguous
//!   ends with a hash of its server and tool.
//! - INVARIANT: a name refers to exactly one tool of one server.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Maximum length of a name in characters.
pub const MAX_LEN: usize = 60;

/// Number of hexadecimal digits of a hash.
const HASH: usize = 8;

/// Separator between server and tool in a name.
const BETWEEN: &str = "__";

/// Server, and the server's own name for the tool or prompt.
pub type Owned = (String, String);

/// Assigned names of all tools, or of all prompts.
#[derive(Debug, Default)]
pub struct Names {
    owners: BTreeMap<String, Owned>,
    names: BTreeMap<Owned, String>,
    /// Warnings about entries that were renamed because of a conflict.
    renamed: Vec<String>,
}

impl Names {
    /// Assigns names to all entries.
    pub fn of(all: impl IntoIterator<Item = Owned>) -> Self {
        let mut names = Self::default();
        let (plain, hashed): (Vec<Owned>, Vec<Owned>) =
            all.into_iter().partition(|(server, tool)| plain(server, tool).is_some());
        for (server, tool) in plain {
            let name = join(&server, &tool);
            names.add(name, (server, tool));
        }
        for owned in hashed {
            names.add(hashed_name(&owned, 0), owned);
        }
        names
    }

    /// Returns the server and tool that have this name.
    pub fn owner(&self, name: &str) -> Option<&Owned> {
        self.owners.get(name)
    }

    /// Returns the name assigned to a tool or prompt.
    pub fn name(&self, owned: &Owned) -> Option<&str> {
        self.names.get(owned).map(String::as_str)
    }

    /// Returns warnings about renamed entries.
    pub fn renamed(&self) -> &[String] {
        &self.renamed
    }

    fn add(&mut self, wanted: String, owned: Owned) {
        if self.names.contains_key(&owned) {
            return;
        }
        let free = |name: &String| !self.owners.contains_key(name);
        // Terminates, because each attempt has a different hash and there are fewer tools than hashes.
        let others = (1..).map(|again| hashed_name(&owned, again));
        let Some(name) = std::iter::once(wanted.clone()).chain(others).find(free) else { return };
        if name != wanted {
            let (server, tool) = &owned;
            self.renamed.push(format!(
                "`{tool}` of `{server}` is renamed to `{name}`, because `{wanted}` is already in use"
            ));
        }
        self.names.insert(owned.clone(), name.clone());
        self.owners.insert(name, owned);
    }
}

/// Returns `true` if a name can belong to this server, judging by its prefix.
pub fn may_be_of(name: &str, server: &str) -> bool {
    let mut begins = format!("{}{BETWEEN}", written(server));
    begins.truncate(MAX_LEN - HASH - 1);
    name.starts_with(&begins)
}

/// Returns the name without a hash, or `None` if it would be ambiguous, too long, or look like a hashed name.
fn plain(server: &str, tool: &str) -> Option<String> {
    let is_as_written = |text: &str| !text.is_empty() && text.bytes().all(is_allowed);
    let is_plain =
        is_as_written(server) && is_as_written(tool) && !server.contains(BETWEEN) && !server.ends_with('_');
    let name = join(server, tool);
    (is_plain && name.len() <= MAX_LEN && !looks_hashed(&name)).then_some(name)
}

/// Returns `true` if a name ends like a hashed name.
fn looks_hashed(name: &str) -> bool {
    let is_hash = |end: &str| {
        end.len() == HASH && end.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    name.rsplit_once('_').is_some_and(|(_, end)| is_hash(end))
}

fn join(server: &str, tool: &str) -> String {
    format!("{server}{BETWEEN}{tool}")
}

/// Returns the readable beginning of a name, followed by a hash.
fn hashed_name((server, tool): &Owned, again: u32) -> String {
    let mut readable = join(&written(server), &written(tool));
    readable.truncate(MAX_LEN - HASH - 1);
    let mut hash = Sha256::new();
    for part in [server.as_bytes(), tool.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(again.to_le_bytes());
    let digits: String = hash.finalize().iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}_{digits}")
}

/// Replaces invalid characters with `_`.
fn written(text: &str) -> String {
    text.chars().map(|c| if u8::try_from(c).is_ok_and(is_allowed) { c } else { '_' }).collect()
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owned(server: &str, tool: &str) -> Owned {
        (server.to_owned(), tool.to_owned())
    }

    #[test]
    fn a_name_is_server_and_tool_with_a_hash_if_ambiguous() {
        let all = [
            owned("git", "git_status"),
            owned("a", "_b"),
            owned("a_", "b"),
            owned("a__b", "c"),
            owned("a", "b__c"),
            owned("a.b", "c"),
            owned("a_b", "c"),
            owned("git", &"long".repeat(20)),
            owned("git", "töne"),
        ];
        let names = Names::of(all.clone());
        let name = |n: usize| names.name(&all[n]).unwrap();
        assert_eq!((name(0), name(1), name(4), name(6)), ("git__git_status", "a___b", "a__b__c", "a_b__c"));
        for (n, begins) in
            [(2, "a___b_"), (3, "a__b__c_"), (5, "a_b__c_"), (7, "git__longlong"), (8, "git__t_ne_")]
        {
            let name = name(n);
            assert!(name.starts_with(begins) && name.len() <= MAX_LEN, "{name}");
        }
        assert!(names.renamed().is_empty());
        assert!(may_be_of("a__b__c", "a") && !may_be_of("b__c", "a") && !may_be_of("ab__c", "a"));
    }

    #[test]
    fn a_name_that_resembles_a_hashed_one_is_hashed() {
        let other = owned("a.b", "c");
        let taken = hashed_name(&other, 0);
        let mimic = owned("a_b", taken.strip_prefix("a_b__").unwrap());
        let names = Names::of([other.clone(), mimic.clone()]);
        assert_eq!(names.name(&other), Some(taken.as_str()));
        assert_eq!(names.name(&mimic), Some(hashed_name(&mimic, 0).as_str()));
        assert!(names.renamed().is_empty());
        assert_eq!(Names::of([mimic.clone()]).name(&mimic), names.name(&mimic));
    }

    proptest! {
        #[test]
        fn names_are_unique_and_independent_of_other_servers(
            all in prop::collection::btree_set(("[ab_.-]{1,4}|[a-z.]{1,70}", "[ab_.ä/-]{1,4}|[a-zA-Z_/]{1,90}"), 1..40),
            other in ("[a-c_.]{1,8}", "[a-c_.]{1,8}"),
        ) {
            let names = Names::of(all.iter().cloned());
            for one in &all {
                let name = names.name(one).unwrap();
                prop_assert_eq!(names.owner(name), Some(one));
                prop_assert!(may_be_of(name, &one.0), "{}", name);
                prop_assert!(name.len() <= MAX_LEN && name.bytes().all(is_allowed), "{}", name);
            }
            prop_assert_eq!(names.owners.len(), all.len());
            let more = Names::of(all.iter().cloned().chain([other]));
            if names.renamed.is_empty() && more.renamed.is_empty() {
                for one in &all {
                    prop_assert_eq!(names.name(one), more.name(one));
                }
            }
        }
    }
}
