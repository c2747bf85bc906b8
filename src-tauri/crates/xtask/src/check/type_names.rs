//! A public type has a name of its own in the whole workspace, or one that its module always stands before.

use super::tree::Tree;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};

/// The names that several types share, and why.
const SHARED: &[(&str, &str)] = &[("Judged", "still to be told apart")];

/// The modules that stand in for others on systems that have no sandbox, with the same names.
const STAND_IN: &str = "unsupported";

/// Fails where a name stands twice and is not listed, and where a listed one does not.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let types = trees
        .iter()
        .flat_map(|tree| tree.public_types().map(|(name, at)| (name, format!("{}{at}", tree.name))));
    let problems = look(types, SHARED);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn look<'a>(types: impl Iterator<Item = (&'a str, String)>, shared: &[(&str, &str)]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, at) in types.filter(|(_, at)| !at.ends_with(STAND_IN)) {
        by_name.entry(name).or_default().insert(at);
    }
    by_name.retain(|_, at| at.len() > 1);
    let listed = |name: &str| shared.iter().any(|(shared, _)| *shared == name);
    let new = by_name.iter().filter(|(name, _)| !listed(name));
    let new = new.map(|(name, at)| {
        format!("`{name}` is the name of types in {}", at.iter().cloned().collect::<Vec<_>>().join(", "))
    });
    let gone = shared.iter().filter(|(name, _)| !by_name.contains_key(name));
    new.chain(gone.map(|(name, _)| format!("`{name}` is the name of one type only: strike it out"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::tests::small;

    fn of(files: &[(&str, &str)], shared: &[(&str, &str)]) -> Vec<String> {
        let tree = small(files);
        look(tree.public_types().map(|(name, at)| (name, format!("small{at}"))), shared)
    }

    #[test]
    fn a_name_stands_once_or_is_listed() {
        let two = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct One;"),
            ("b.rs", "#[must_use]\npub enum One {}"),
        ];
        assert_eq!(of(&two, &[]), ["`One` is the name of types in small::a, small::b"]);
        assert_eq!(of(&two, &[("One", "a reason")]), [""; 0]);
        assert_eq!(
            of(&two[..2].iter().copied().chain([("b.rs", "")]).collect::<Vec<_>>(), &[("One", "a reason")]),
            ["`One` is the name of one type only: strike it out"]
        );
    }

    #[test]
    fn private_types_those_of_traits_and_stand_ins_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; mod unsupported;"),
            ("a.rs", "pub struct One; struct Two; pub(crate) type Three = u8;"),
            (
                "b.rs",
                "pub struct Two; pub struct Three; pub trait T { type One; } impl T for Two { type One = u8; }",
            ),
            ("unsupported.rs", "pub struct One;"),
        ];
        assert_eq!(of(&files, &[]), [""; 0]);
    }
}
