//! What the kernel must show a server, and how to get there from what it shows now. Pure.
//!
//! - What is mounted is exactly what live grants and calls under way need.
//! - Taking a mount away takes away what is mounted below it; what is still wanted there is put back.

use crate::consent::Target;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::Access;

/// One path a server must see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The path, shown at itself.
    pub path: CanonicalPath,
    /// Whether it may be written.
    pub writable: bool,
}

/// How a server writes files, from its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileWrites {
    /// Opens the file and writes into it: it needs no more than the file.
    #[default]
    InPlace,
    /// Writes a new file beside it and renames that over it: it needs the folder.
    Replace,
}

/// What must be shown for one access. `nearest` is the nearest folder above that exists.
///
/// A name that is made or removed is a change of its folder, so the folder is what the server must reach.
/// Reading what does not exist needs nothing.
#[must_use]
pub fn need(
    access: Access,
    path: &CanonicalPath,
    target: Target,
    writes: FileWrites,
    nearest: Option<CanonicalPath>,
) -> Option<Need> {
    let folder = |nearest: Option<CanonicalPath>| nearest.map(|path| Need { path, writable: true });
    match (access, target) {
        (Access::Read, Target::Missing) => None,
        (Access::Read, Target::File(_) | Target::Folder | Target::Special) => {
            Some(Need { path: path.clone(), writable: false })
        }
        (Access::Write, Target::File(_) | Target::Special) if writes == FileWrites::InPlace => {
            Some(Need { path: path.clone(), writable: true })
        }
        (Access::Write, Target::Folder) => Some(Need { path: path.clone(), writable: true }),
        (Access::Write | Access::Delete, _) => folder(nearest),
    }
}

/// One needs list without doubles: a path needed twice is writable if either need says so.
#[must_use]
pub fn united(needs: impl IntoIterator<Item = Need>) -> Vec<Need> {
    let mut all: Vec<Need> = needs.into_iter().collect();
    all.sort_by(|a, b| a.path.cmp(&b.path).then(b.writable.cmp(&a.writable)));
    all.dedup_by(|later, first| later.path == first.path);
    // What a mount above shows just as well needs no mount of its own.
    let shows =
        |above: &Need, n: &Need| above.path.strictly_contains(&n.path) && (above.writable || !n.writable);
    let covered = |n: &Need| all.iter().any(|above| shows(above, n));
    all.iter().filter(|n| !covered(n)).cloned().collect()
}

/// A change of what is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Show it.
    Add(Need),
    /// Take it away, with proof.
    Remove(CanonicalPath),
}

/// The steps to show what is newly wanted; nothing that is to go is taken away yet, unless it stands in the way.
#[must_use]
pub fn additions(now: &[Need], wanted: &[Need]) -> Vec<Step> {
    let new: Vec<&Need> = wanted.iter().filter(|w| !now.contains(w)).collect();
    let covers = |m: &&Need| new.iter().any(|n| n.path.contains(&m.path));
    let in_the_way: Vec<&Need> = now.iter().filter(covers).collect();
    let back = in_the_way.iter().copied().filter(|m| wanted.contains(m));
    steps(&in_the_way, new.iter().copied().chain(back))
}

/// The steps to take away what is not wanted any more.
#[must_use]
pub fn removals(now: &[Need], wanted: &[Need]) -> Vec<Step> {
    let gone: Vec<&Need> = now.iter().filter(|m| !wanted.contains(m)).collect();
    let below = |m: &&Need| gone.iter().any(|g| g.path.contains(&m.path));
    let affected: Vec<&Need> = now.iter().filter(below).collect();
    let back: Vec<&Need> = affected.iter().copied().filter(|m| wanted.contains(m)).collect();
    steps(&affected, back.into_iter())
}

/// The deepest go first and come last.
fn steps<'a>(remove: &[&Need], add: impl Iterator<Item = &'a Need>) -> Vec<Step> {
    let depth = |path: &CanonicalPath| path.components().count();
    let mut gone: Vec<&CanonicalPath> = remove.iter().map(|n| &n.path).collect();
    gone.sort_by_key(|p| std::cmp::Reverse(depth(p)));
    let mut come: Vec<&Need> = add.collect();
    come.sort_by_key(|n| depth(&n.path));
    gone.into_iter().cloned().map(Step::Remove).chain(come.into_iter().cloned().map(Step::Add)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(text).unwrap()
    }

    fn n(text: &str, writable: bool) -> Need {
        Need { path: path(text), writable }
    }

    #[test]
    fn each_access_needs_no_more_than_it_must() {
        let p = path("/d/f");
        let got = |access, target, writes| need(access, &p, target, writes, Some(path("/d")));
        let (file, in_place, replace) = (Target::File(1), FileWrites::InPlace, FileWrites::Replace);
        assert_eq!(got(Access::Read, file, in_place), Some(n("/d/f", false)));
        assert_eq!(got(Access::Read, Target::Missing, in_place), None);
        assert_eq!(got(Access::Write, file, in_place), Some(n("/d/f", true)));
        assert_eq!(got(Access::Write, file, replace), Some(n("/d", true)));
        assert_eq!(got(Access::Write, Target::Missing, in_place), Some(n("/d", true)));
        assert_eq!(got(Access::Write, Target::Folder, replace), Some(n("/d/f", true)));
        assert_eq!(got(Access::Delete, file, in_place), Some(n("/d", true)));
        assert_eq!(got(Access::Delete, Target::Folder, in_place), Some(n("/d", true)));
    }

    #[test]
    fn needs_are_united_without_losing_or_widening_any() {
        let got = united([n("/d/f", false), n("/d", false), n("/d/g", true), n("/e", false), n("/e", true)]);
        assert_eq!(got, [n("/d", false), n("/d/g", true), n("/e", true)]);
        assert_eq!(united([n("/d", true), n("/d/ro", false)]), [n("/d", true)]);
    }

    #[test]
    fn what_lies_below_is_put_back() {
        let now = [n("/d", false), n("/d/f", true), n("/e", false)];
        let gone = removals(&now, &[n("/d/f", true), n("/e", false)]);
        assert_eq!(gone, [Step::Remove(path("/d/f")), Step::Remove(path("/d")), Step::Add(n("/d/f", true))]);
        let come = additions(&[n("/d/f", true)], &[n("/d", false), n("/d/f", true)]);
        assert_eq!(come, [Step::Remove(path("/d/f")), Step::Add(n("/d", false)), Step::Add(n("/d/f", true))]);
        assert_eq!(removals(&now, &now), []);
        assert_eq!(additions(&now, &now), []);
    }

    fn applied(now: &[Need], steps: &[Step]) -> Vec<Need> {
        let mut mounted = now.to_vec();
        for step in steps {
            match step {
                Step::Add(need) => {
                    assert!(
                        !mounted.iter().any(|m| need.path.contains(&m.path)),
                        "{need:?} would hide {mounted:?}"
                    );
                    mounted.push(need.clone());
                }
                Step::Remove(path) => {
                    let before = mounted.len();
                    mounted.retain(|m| !path.contains(&m.path));
                    assert_eq!(before - 1, mounted.len(), "removing {path} takes more than itself");
                }
            }
        }
        mounted.sort();
        mounted
    }

    proptest! {
        #[test]
        fn the_steps_always_arrive_and_never_hide_a_mount(
            now in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
            wanted in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..8),
        ) {
            let needs = |of: Vec<(String, bool)>| united(of.iter().map(|(p, w)| n(p, *w)));
            let (now, wanted) = (needs(now), needs(wanted));
            let with = applied(&now, &additions(&now, &wanted));
            prop_assert!(wanted.iter().all(|w| with.contains(w)));
            let mut expected = wanted.clone();
            expected.sort();
            prop_assert_eq!(applied(&with, &removals(&with, &wanted)), expected);
        }
    }
}
