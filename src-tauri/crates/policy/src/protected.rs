//! Paths that no call touches, held so that asking about a path costs one search.
//!
//! - A path is closed when it is a protected one or lies below it, and also when it lies above one and the call goes
//!   down into it.
//! - The session sandbox lies in a protected folder of ours: that folder does not close it, one inside it does.

use ironcurtain_paths::CanonicalPath;
use std::cmp::Ordering;

/// The protected paths. Built once, asked for every path of every call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Protected {
    paths: Vec<CanonicalPath>,
    /// INVARIANT: sorted by [`order`], each path once.
    sorted: Vec<Entry>,
}

/// A protected path.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    path: CanonicalPath,
    /// The place of the innermost protected path that it lies in.
    inside: Option<usize>,
}

/// Why a path is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It is protected, or in something that is.
    Inside,
    /// Something protected is in it.
    Above,
}

impl Protected {
    /// Nothing is protected.
    pub const NOTHING: &'static Self = &Self { paths: Vec::new(), sorted: Vec::new() };

    /// The protected paths, in the order they were given.
    #[must_use]
    pub fn paths(&self) -> &[CanonicalPath] {
        &self.paths
    }

    /// Whether a path is closed, for a call that goes down into it or does not, in a session sandbox.
    pub(crate) fn closes(
        &self,
        path: &CanonicalPath,
        descends: bool,
        sandbox: Option<&CanonicalPath>,
    ) -> Option<Closed> {
        let next = self.sorted.partition_point(|entry| order(&entry.path, path) != Ordering::Greater);
        let innermost = self.innermost(next, path);
        // Of a path in the session sandbox, what is protected above that sandbox does not count. Both are ancestors of
        // the path, so that the longer one is the inner one.
        let spared = |protected: &CanonicalPath| {
            let within = sandbox.filter(|sandbox| sandbox.contains(path));
            within.is_some_and(|sandbox| protected.as_str().len() <= sandbox.as_str().len())
        };
        if innermost.is_some_and(|protected| !spared(protected)) {
            return Some(Closed::Inside);
        }
        if !descends {
            return None;
        }
        if innermost == Some(path) {
            return Some(Closed::Inside);
        }
        let below = self.sorted.get(next).filter(|entry| path.contains(&entry.path));
        below.map(|_| Closed::Above)
    }

    /// The innermost protected path that holds a path which would stand before `next`.
    fn innermost(&self, next: usize, path: &CanonicalPath) -> Option<&CanonicalPath> {
        // What stands between a folder and something in it is in that folder, too.
        let mut last = self.sorted.get(next.checked_sub(1)?)?;
        while !last.path.contains(path) {
            last = self.sorted.get(last.inside?)?;
        }
        Some(&last.path)
    }
}

impl FromIterator<CanonicalPath> for Protected {
    fn from_iter<I: IntoIterator<Item = CanonicalPath>>(paths: I) -> Self {
        let paths: Vec<CanonicalPath> = paths.into_iter().collect();
        let mut sorted = paths.clone();
        sorted.sort_by(order);
        sorted.dedup();
        let mut protected = Self { paths, sorted: Vec::with_capacity(sorted.len()) };
        for path in sorted {
            let holds = |entry: &Entry| entry.path.contains(&path);
            let inside = protected.sorted.iter().rposition(holds);
            protected.sorted.push(Entry { path, inside });
        }
        protected
    }
}

/// The order in which whatever lies in a folder directly follows it: as if every path ended in a slash.
fn order(a: &CanonicalPath, b: &CanonicalPath) -> Ordering {
    let (a, b) = (spelled(a), spelled(b));
    let (start_of_a, start_of_b) = (a.get(..b.len()).unwrap_or(a), b.get(..a.len()).unwrap_or(b));
    start_of_a.cmp(start_of_b).then_with(|| match (a.get(b.len()), b.get(a.len())) {
        (Some(next), None) => next.cmp(&b'/').then(Ordering::Greater),
        (None, Some(next)) => b'/'.cmp(next).then(Ordering::Less),
        (None, None) | (Some(_), Some(_)) => Ordering::Equal,
    })
}

/// Without a slash at its end, which the root alone has.
fn spelled(path: &CanonicalPath) -> &[u8] {
    if path.is_root() { b"" } else { path.as_str().as_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = CanonicalPath> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "a-", "a0", "longer-name"]), 0..4)
            .prop_map(|parts| CanonicalPath::assume_canonical(&format!("/{}", parts.join("/"))).unwrap())
    }

    /// The same question, asked of every protected path.
    fn looked(
        protected: &[CanonicalPath],
        path: &CanonicalPath,
        descends: bool,
        sandbox: Option<&CanonicalPath>,
    ) -> bool {
        protected.iter().any(|protected| {
            let excepted =
                sandbox.is_some_and(|sandbox| protected.contains(sandbox) && sandbox.contains(path));
            (descends && path.contains(protected)) || (protected.contains(path) && !excepted)
        })
    }

    #[test]
    fn what_is_protected_in_the_session_sandbox_is_closed_however_short_its_name() {
        let at = |text| CanonicalPath::assume_canonical(text).unwrap();
        let (sandbox, protected) = (at("/s/b"), Protected::from_iter([at("/s"), at("/s/b/k")]));
        let closes = |path| protected.closes(&at(path), false, Some(&sandbox));
        assert_eq!([closes("/s/b/k"), closes("/s/b/k/x"), closes("/s/x")], [Some(Closed::Inside); 3]);
        assert_eq!([closes("/s/b"), closes("/s/b/x"), closes("/s/b/kk")], [None; 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
        #[test]
        fn the_search_finds_what_a_look_at_every_path_finds(
            paths in prop::collection::vec(place(), 0..5), path in place(), descends in any::<bool>(),
            sandbox in prop::option::of(place()),
        ) {
            let protected: Protected = paths.iter().cloned().collect();
            let closed = protected.closes(&path, descends, sandbox.as_ref());
            prop_assert_eq!(closed.is_some(), looked(&paths, &path, descends, sandbox.as_ref()));
            let inside = paths.iter().any(|protected| protected.contains(&path));
            match closed {
                Some(Closed::Above) => prop_assert!(paths.iter().any(|p| path.strictly_contains(p))),
                Some(Closed::Inside) => prop_assert!(inside),
                None => {}
            }
            prop_assert_eq!(protected.paths(), paths.as_slice());
        }
    }
}
