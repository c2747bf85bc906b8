//! Names by which an agent refers to the tools and prompts of several servers: `server__tool`.
//!
//! - A name consists of at most 60 letters, digits, `_` and `-`, which every agent client accepts.
//! - A name depends only on its server and tool, not on other servers or their order. A name that would be ambiguous
//!   ends with a hash of its server and tool.
//! - INVARIANT: a name refers to exactly one tool of one server.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Maximum length of a name in characters.
pub const MAX_NAME_LEN: usize = 60;

/// Number of hexadecimal digits of a hash.
const HASH_LEN: usize = 8;

/// Separator between server and tool in a name.
const SEPARATOR: &str = "__";

/// Server, and the server's own name for the tool or prompt.
pub type EntryKey = (String, String);

/// Assigned names of all tools, or of all prompts.
#[derive(Debug, Default)]
pub struct AssignedNames {
    owners: BTreeMap<String, EntryKey>,
    names: BTreeMap<EntryKey, String>,
    /// Warnings about entries that were renamed because of a conflict.
    warnings: Vec<String>,
}

impl AssignedNames {
    /// Assigns names to all entries.
    pub fn assign(entries: impl IntoIterator<Item = EntryKey>) -> Self {
        let mut names = Self::default();
        let (unhashed, hashed): (Vec<EntryKey>, Vec<EntryKey>) =
            entries.into_iter().partition(|(server, tool)| unhashed(server, tool).is_some());
        for (server, tool) in unhashed {
            let name = join(&server, &tool);
            names.add(name, (server, tool));
        }
        for key in hashed {
            names.add(hashed_name(&key, 0), key);
        }
        names
    }

    /// Returns the server and tool that have this name.
    pub fn owner(&self, name: &str) -> Option<&EntryKey> {
        self.owners.get(name)
    }

    /// Returns the name assigned to a tool or prompt.
    pub fn name(&self, key: &EntryKey) -> Option<&str> {
        self.names.get(key).map(String::as_str)
    }

    /// Returns warnings about renamed entries.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn add(&mut self, wanted: String, key: EntryKey) {
        if self.names.contains_key(&key) {
            return;
        }
        let free = |name: &String| !self.owners.contains_key(name);
        // Terminates, because each attempt has a different hash and there are fewer tools than hashes.
        let others = (1..).map(|attempt| hashed_name(&key, attempt));
        let Some(name) = std::iter::once(wanted.clone()).chain(others).find(free) else { return };
        if name != wanted {
            let (server, tool) = &key;
            self.warnings.push(format!(
                "`{tool}` of `{server}` is renamed to `{name}`, because `{wanted}` is already in use"
            ));
        }
        self.names.insert(key.clone(), name.clone());
        self.owners.insert(name, key);
    }
}

/// Returns `true` if a name can belong to this server, judging by its prefix.
pub fn may_belong_to(name: &str, server: &str) -> bool {
    let mut prefix = format!("{}{SEPARATOR}", replace_invalid(server));
    prefix.truncate(MAX_NAME_LEN - HASH_LEN - 1);
    name.starts_with(&prefix)
}

/// Returns the name without a hash, or `None` if it would be ambiguous, too long, or look like a hashed name.
fn unhashed(server: &str, tool: &str) -> Option<String> {
    let is_valid = |text: &str| !text.is_empty() && text.bytes().all(is_allowed);
    let is_plain =
        is_valid(server) && is_valid(tool) && !server.contains(SEPARATOR) && !server.ends_with('_');
    let name = join(server, tool);
    (is_plain && name.len() <= MAX_NAME_LEN && !has_hash_suffix(&name)).then_some(name)
}

/// Returns `true` if a name ends like a hashed name.
fn has_hash_suffix(name: &str) -> bool {
    let is_hash = |end: &str| {
        end.len() == HASH_LEN && end.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    name.rsplit_once('_').is_some_and(|(_, end)| is_hash(end))
}

fn join(server: &str, tool: &str) -> String {
    format!("{server}{SEPARATOR}{tool}")
}

/// Returns the readable beginning of a name, followed by a hash.
fn hashed_name((server, tool): &EntryKey, attempt: u32) -> String {
    let mut readable = join(&replace_invalid(server), &replace_invalid(tool));
    readable.truncate(MAX_NAME_LEN - HASH_LEN - 1);
    let mut hash = Sha256::new();
    for part in [server.as_bytes(), tool.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(attempt.to_le_bytes());
    let digits: String =
        hash.finalize().iter().take(HASH_LEN / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}_{digits}")
}

/// Replaces invalid characters with `_`.
fn replace_invalid(text: &str) -> String {
    text.chars().map(|c| if u8::try_from(c).is_ok_and(is_allowed) { c } else { '_' }).collect()
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(server: &str, tool: &str) -> EntryKey {
        (server.to_owned(), tool.to_owned())
    }

    #[test]
    fn a_name_is_server_and_tool_with_a_hash_if_ambiguous() {
        let entries = [
            key("git", "git_status"),
            key("a", "_b"),
            key("a_", "b"),
            key("a__b", "c"),
            key("a", "b__c"),
            key("a.b", "c"),
            key("a_b", "c"),
            key("git", &"long".repeat(20)),
            key("git", "töne"),
        ];
        let names = AssignedNames::assign(entries.clone());
        let name = |n: usize| names.name(&entries[n]).unwrap();
        assert_eq!((name(0), name(1), name(4), name(6)), ("git__git_status", "a___b", "a__b__c", "a_b__c"));
        for (n, prefix) in
            [(2, "a___b_"), (3, "a__b__c_"), (5, "a_b__c_"), (7, "git__longlong"), (8, "git__t_ne_")]
        {
            let name = name(n);
            assert!(name.starts_with(prefix) && name.len() <= MAX_NAME_LEN, "{name}");
        }
        assert!(names.warnings().is_empty());
        assert!(may_belong_to("a__b__c", "a") && !may_belong_to("b__c", "a") && !may_belong_to("ab__c", "a"));
    }

    #[test]
    fn a_name_that_resembles_a_hashed_one_is_hashed() {
        let other = key("a.b", "c");
        let taken = hashed_name(&other, 0);
        let mimic = key("a_b", taken.strip_prefix("a_b__").unwrap());
        let names = AssignedNames::assign([other.clone(), mimic.clone()]);
        assert_eq!(names.name(&other), Some(taken.as_str()));
        assert_eq!(names.name(&mimic), Some(hashed_name(&mimic, 0).as_str()));
        assert!(names.warnings().is_empty());
        assert_eq!(AssignedNames::assign([mimic.clone()]).name(&mimic), names.name(&mimic));
    }

    proptest! {
        #[test]
        fn names_are_unique_and_independent_of_other_servers(
            entries in prop::collection::btree_set(("[ab_.-]{1,4}|[a-z.]{1,70}", "[ab_.ä/-]{1,4}|[a-zA-Z_/]{1,90}"), 1..40),
            other in ("[a-c_.]{1,8}", "[a-c_.]{1,8}"),
        ) {
            let names = AssignedNames::assign(entries.iter().cloned());
            for one in &entries {
                let name = names.name(one).unwrap();
                prop_assert_eq!(names.owner(name), Some(one));
                prop_assert!(may_belong_to(name, &one.0), "{}", name);
                prop_assert!(name.len() <= MAX_NAME_LEN && name.bytes().all(is_allowed), "{}", name);
            }
            prop_assert_eq!(names.owners.len(), entries.len());
            let more = AssignedNames::assign(entries.iter().cloned().chain([other]));
            if names.warnings.is_empty() && more.warnings.is_empty() {
                for one in &entries {
                    prop_assert_eq!(names.name(one), more.name(one));
                }
            }
        }
    }
}
