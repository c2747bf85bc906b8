//! Checks that public type names are unique in the workspace.

use super::tree::Tree;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the modules for systems without a sandbox. They define the same type names as the real modules.
const STAND_IN: &str = "unsupported";

/// Returns an error if two public types have the same name.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let types = trees
        .iter()
        .flat_map(|tree| tree.public_types().map(|(name, at)| (name, format!("{}{at}", tree.name))));
    let problems = find_duplicates(types);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn find_duplicates<'a>(types: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut by_name: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, at) in types.filter(|(_, at)| !at.ends_with(STAND_IN)) {
        by_name.entry(name).or_default().insert(at);
    }
    let twice = by_name.into_iter().filter(|(_, at)| at.len() > 1);
    let shown = |(name, at): (&str, BTreeSet<String>)| {
        format!("several types are named `{name}`: in {}", at.into_iter().collect::<Vec<_>>().join(", "))
    };
    twice.map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::tests::small;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let tree = small(files);
        find_duplicates(tree.public_types().map(|(name, at)| (name, format!("small{at}"))))
    }

    #[test]
    fn duplicate_names_are_reported() {
        let two = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct One;"),
            ("b.rs", "#[must_use]\npub enum One {}"),
        ];
        assert_eq!(of(&two), ["several types are named `One`: in small::a, small::b"]);
        assert_eq!(of(&[two[0], two[1], ("b.rs", "pub enum Other {}")]), [""; 0]);
    }

    #[test]
    fn private_associated_and_platform_types_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; mod unsupported;"),
            ("a.rs", "pub struct One; struct Two; pub(crate) type Three = u8;"),
            (
                "b.rs",
                "pub struct Two; pub struct Three; pub trait T { type One; } impl T for Two { type One = u8; }",
            ),
            ("unsupported.rs", "pub struct One;"),
        ];
        assert_eq!(of(&files), [""; 0]);
    }
}
