//! Checks that imports between sibling modules form no cycle.
//!
//! - A module contains its children, and a child may use its parent's types.
//! - An import cycle between files is therefore an error only if it is a cycle of sibling modules.

use super::tree::{Arrow, Tree};
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};

/// Sibling modules that import one another, directly or indirectly.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    name: String,
    /// Imports that form the cycle, with their locations.
    seen: Vec<String>,
}

/// Returns an error that lists the imports of each cycle.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let circles = trees.iter().flat_map(|tree| circles(&tree.name, &tree.arrows()));
    let shown =
        circles.map(|circle| format!("circle of imports: {}\n  {}", circle.name, circle.seen.join("\n  ")));
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        bail!("{}", shown.join("\n"));
    }
    Ok(())
}

/// Returns the cycles among the children of each module in a crate.
fn circles(crate_name: &str, arrows: &[Arrow]) -> Vec<Circle> {
    let mut by_parent: BTreeMap<&[String], Siblings> = BTreeMap::new();
    for arrow in arrows {
        if let Some((parent, from, to)) = siblings(arrow) {
            let level = by_parent.entry(parent).or_default();
            level.entry(from).or_default().entry(to).or_insert(&arrow.seen);
        }
    }
    let mut circles = Vec::new();
    for (parent, level) in by_parent {
        let within = [&[crate_name.to_owned()], parent].concat().join("::");
        for members in strongly_connected(&level) {
            let name = members.iter().copied().collect::<Vec<_>>().join(", ");
            let mut seen = Vec::new();
            for (from, arrows) in level.iter().filter(|(from, _)| members.contains(*from)) {
                let within = arrows.iter().filter(|(to, _)| members.contains(*to));
                seen.extend(within.map(|(to, seen)| format!("{from} -> {to} in {seen}")));
            }
            circles.push(Circle { name: format!("{within}::{{{name}}}"), seen });
        }
    }
    circles
}

/// Imports between a module's children: for each importing module, the imported modules with the location of the first
/// import.
type Siblings<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

/// Returns the nearest common ancestor of an import's two modules, and its two children that contain them, or `None`
/// if one of the modules contains the other.
pub(super) fn siblings(arrow: &Arrow) -> Option<(&[String], &str, &str)> {
    let common = arrow.from.iter().zip(&arrow.to).take_while(|(from, to)| from == to).count();
    Some((arrow.from.get(..common)?, arrow.from.get(common)?, arrow.to.get(common)?))
}

/// Returns the sets of modules that import one another, directly or indirectly.
fn strongly_connected<'a>(level: &Siblings<'a>) -> Vec<BTreeSet<&'a str>> {
    let reach: BTreeMap<_, _> = level.keys().map(|from| (*from, reached(from, level))).collect();
    let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reached| reached.contains(to));
    let mut sets: Vec<BTreeSet<&str>> = Vec::new();
    for from in level.keys().copied().filter(|from| reaches(from, from)) {
        if !sets.iter().any(|set| set.contains(from)) {
            sets.push(level.keys().copied().filter(|to| reaches(from, to) && reaches(to, from)).collect());
        }
    }
    sets
}

fn reached<'a>(from: &'a str, level: &Siblings<'a>) -> BTreeSet<&'a str> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(from) = waiting.pop() {
        waiting.extend(
            level.get(from).into_iter().flatten().map(|(to, _)| *to).filter(|to| reached.insert(*to)),
        );
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::tests::small;

    const NONE: [&str; 0] = [];

    /// Returns the cycles in a crate that consists of these files.
    fn of(files: &[(&str, &str)]) -> Vec<String> {
        circles("small", &small(files).arrows()).into_iter().map(|circle| circle.name).collect()
    }

    #[test]
    fn mutual_imports_are_a_circle() {
        let lib = ("lib.rs", "mod a; mod b;");
        let there = ("a.rs", "use crate::b::B; pub struct A(B);");
        assert_eq!(of(&[lib, there, ("b.rs", "pub struct B;")]), NONE);
        assert_eq!(of(&[lib, there, ("b.rs", "pub struct B; fn f(a: &crate::a::A) {}")]), ["small::{a, b}"]);
        assert_eq!(
            of(&[lib, there, ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }")]),
            NONE
        );
    }

    #[test]
    fn finds_circles_through_submodules() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c; mod d; pub use c::C; pub struct A;"),
            ("a/c.rs", "use super::{A, d}; pub struct C(A, d::D);"),
            ("a/d.rs", "use crate::b::B; pub struct D(B);"),
            ("b.rs", "pub struct B;"),
        ];
        assert_eq!(of(&files), NONE, "a child may name its parent's types");
        let mut circle = files;
        circle[4] = ("b.rs", "use crate::a::C; pub struct B(C);");
        let found = circles("small", &small(&circle).arrows());
        let [one] = found.as_slice() else { panic!("one circle: {found:?}") };
        assert_eq!(one.name, "small::{a, b}");
        let seen: Vec<_> = one.seen.iter().map(|seen| seen.rsplit('/').next().unwrap()).collect();
        assert_eq!(seen, ["d.rs:1", "b.rs:1"]);
        circle[3] = ("a/d.rs", "use super::C; pub struct D;");
        assert_eq!(of(&circle), ["small::a::{c, d}"], "a re-export belongs to the child that defines it");
    }
}
