//! Paths that no call touches, held so that asking about a path costs a walk along its components.
//!
//! - A path is closed when it is a protected one or lies below it, and also when it lies above one and the call goes
//!   down into it.
//! - The session sandbox lies in a protected folder of ours: that folder does not close it, one inside it does.

use crate::names::Names;
use ironcurtain_paths::CanonicalPath;

/// The protected paths. Built once, asked for every path of every call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Protected {
    paths: Vec<CanonicalPath>,
    tree: Node,
}

/// Why a path is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It is protected, or in something that is.
    Inside,
    /// Something protected is in it.
    Above,
}

/// A folder on the way to a protected path.
#[derive(Debug, Clone, PartialEq, Default)]
struct Node {
    protected: bool,
    below: Names<Self>,
}

impl Protected {
    /// Nothing is protected.
    pub const NOTHING: &'static Self =
        &Self { paths: Vec::new(), tree: Node { protected: false, below: Names::NONE } };

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
        // Of a path in the session sandbox, what is protected above that sandbox does not count. Both are ancestors of
        // the path, so that the longer one is the inner one.
        let spared = sandbox.filter(|sandbox| sandbox.contains(path)).map(|sandbox| sandbox.as_str().len());
        let closed =
            |node: &Node, walked: usize| node.protected && spared.is_none_or(|spared| walked.max(1) > spared);
        let (mut node, mut walked) = (&self.tree, 0);
        if closed(node, walked) {
            return Some(Closed::Inside);
        }
        for part in path.components() {
            node = node.below.get(part)?;
            walked += 1 + part.len();
            if closed(node, walked) {
                return Some(Closed::Inside);
            }
        }
        if !descends || self.paths.is_empty() {
            return None;
        }
        Some(if node.protected { Closed::Inside } else { Closed::Above })
    }

    fn plant(&mut self, path: &CanonicalPath) {
        let mut node = &mut self.tree;
        for part in path.components() {
            let Some(below) = node.below.entry(part) else { return };
            node = below;
        }
        node.protected = true;
    }
}

impl FromIterator<CanonicalPath> for Protected {
    fn from_iter<I: IntoIterator<Item = CanonicalPath>>(paths: I) -> Self {
        let mut protected = Self { paths: paths.into_iter().collect(), tree: Node::default() };
        for path in protected.paths.clone() {
            protected.plant(&path);
        }
        protected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = CanonicalPath> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "longer-name", "longer-nbme"]), 0..4)
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
        fn the_walk_finds_what_a_look_at_every_path_finds(
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
