//! Protected paths, read-only paths and autostart files. Rules and grants cannot override their restrictions.
//!
//! - Protected paths form a tree, so a lookup takes one step per path component.
//! - A path is closed if it is protected or below a protected path. A folder that contains a protected path is closed
//!   to recursive calls.
//! - The session sandbox is inside one of IronCurtain's protected folders and stays open, except for protected paths
//!   inside it.

use crate::RuleReason;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_paths::protected::KnownPath;
use std::collections::BTreeMap;

/// Set of protected paths. The set is built once. Each path in a call is checked against it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProtectedPaths {
    paths: Vec<CanonicalPath>,
    root: Node,
    read_only: Vec<ReadOnlyPath>,
    autostart: &'static [KnownPath],
    /// Paths that managed rules close or make read-only.
    managed: Vec<ManagedPath>,
}

/// Path that rules can permit reading but that no call may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOnlyPath {
    /// Path of the file or folder.
    pub path: CanonicalPath,
    /// Reason the path is read-only.
    pub reason: ReadOnlyReason,
}

/// Path that a managed rule closes or makes read-only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagedPath {
    pub(crate) path: CanonicalPath,
    /// `true` if the path is closed, and `false` if it is read-only.
    pub(crate) is_closed: bool,
    pub(crate) rule: RuleReason,
}

/// Reason a path is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyReason {
    /// The folder contains IronCurtain's own programs, which run outside every sandbox.
    OurPrograms,
    /// The file is an agent client's configuration, from which the client starts programs.
    ClientConfiguration,
    /// A rule of the user's organization denies changes.
    Organization,
}

/// Node in the path tree: a protected path, or a folder above one.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    is_protected: bool,
    children: BTreeMap<String, Self>,
}

/// Reason a path is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedReason {
    /// The path is protected, or inside a protected folder.
    Protected,
    /// The path contains a protected path.
    ContainsProtected,
}

impl ProtectedPaths {
    /// Empty set, which protects nothing.
    pub const NOTHING: &'static Self = &Self {
        paths: Vec::new(),
        root: Node::EMPTY,
        read_only: Vec::new(),
        autostart: &[],
        managed: Vec::new(),
    };

    /// Returns a copy that also contains these paths.
    #[must_use]
    pub fn with_protected(self, additional: impl IntoIterator<Item = CanonicalPath>) -> Self {
        let Self { paths, read_only, autostart, managed, .. } = self;
        let all: Self = paths.into_iter().chain(additional).collect();
        Self { read_only, autostart, managed, ..all }
    }

    /// Returns a copy that also contains these read-only paths.
    #[must_use]
    pub fn with_read_only(self, read_only: Vec<ReadOnlyPath>) -> Self {
        Self { read_only, ..self }
    }

    /// Adds the names of autostart files. Writing such a file requires approval in any folder.
    #[must_use]
    pub fn with_autostart_files(self, autostart: &'static [KnownPath]) -> Self {
        Self { autostart, ..self }
    }

    pub(crate) fn with_managed_paths(self, managed: Vec<ManagedPath>) -> Self {
        Self { managed, ..self }
    }

    /// Returns the managed rule that denies changes to a read-only path.
    pub(crate) fn read_only_rule(&self, read_only: &CanonicalPath) -> Option<&RuleReason> {
        let mut kept_paths = self.managed.iter().filter(|managed| !managed.is_closed);
        kept_paths.find(|managed| managed.path == *read_only).map(|managed| &managed.rule)
    }

    /// Returns the managed rule that denies reading a path or, with `descends`, a path inside it.
    #[must_use]
    pub fn denying_rule(&self, path: &CanonicalPath, descends: bool) -> Option<&RuleReason> {
        let mut closed = self.managed.iter().filter(|managed| managed.is_closed);
        let closed = closed.find(|m| m.path.contains(path) || (descends && path.contains(&m.path)));
        closed.map(|managed| &managed.rule)
    }

    /// Returns a copy in which the paths in `logins` are not protected, and the client configurations in the folders
    /// `configurations` are not read-only. Paths that the user's organization closes stay closed.
    #[must_use]
    pub fn without_client_files(&self, logins: &[CanonicalPath], configurations: &[CanonicalPath]) -> Self {
        let is_exempt = |read_only: &&ReadOnlyPath| {
            read_only.reason == ReadOnlyReason::ClientConfiguration
                && configurations.iter().any(|folder| folder.contains(&read_only.path))
        };
        let read_only = self.read_only.iter().filter(|read_only| !is_exempt(read_only)).cloned().collect();
        let is_managed = |path: &CanonicalPath| self.managed.iter().any(|managed| managed.path == *path);
        let paths = self.paths.iter().filter(|path| !logins.contains(path) || is_managed(path)).cloned();
        let remaining =
            paths.collect::<Self>().with_read_only(read_only).with_autostart_files(self.autostart);
        remaining.with_managed_paths(self.managed.clone())
    }

    /// Returns the read-only paths.
    #[must_use]
    pub fn read_only(&self) -> &[ReadOnlyPath] {
        &self.read_only
    }

    /// Returns a protected path that mounting a folder would expose, or a read-only path that mounting the folder would
    /// make writable.
    #[must_use]
    pub fn exposed_by(&self, folder: &CanonicalPath, writable: bool) -> Option<&CanonicalPath> {
        let masked = self.masked_in(folder);
        let read_only = self
            .read_only
            .iter()
            .map(|read_only| &read_only.path)
            .filter(|read_only| writable && !masked.contains(read_only));
        self.paths.iter().chain(read_only).find(|path| path.overlaps(folder))
    }

    /// Returns the read-only paths in a folder. The sandbox mounts a mask over each of them so that the rest of the
    /// folder can be writable. These paths contain IronCurtain's own programs, so they exist as long as IronCurtain is
    /// running.
    #[must_use]
    pub fn masked_in(&self, folder: &CanonicalPath) -> Vec<&CanonicalPath> {
        let is_masked = |read_only: &&ReadOnlyPath| {
            read_only.reason == ReadOnlyReason::OurPrograms && folder.strictly_contains(&read_only.path)
        };
        self.read_only.iter().filter(is_masked).map(|read_only| &read_only.path).collect()
    }

    /// Returns the read-only path that contains `path`. If the call removes `path` (`is_removed`), a read-only path
    /// inside it also counts.
    pub(crate) fn read_only_path(&self, path: &CanonicalPath, is_removed: bool) -> Option<&ReadOnlyPath> {
        self.read_only
            .iter()
            .find(|read_only| read_only.path.contains(path) || (is_removed && path.contains(&read_only.path)))
    }

    /// Returns the autostart entry that matches a path. With `may_create_folder`, a folder that may contain an
    /// autostart file also matches.
    pub(crate) fn autostart_file(
        &self,
        path: &CanonicalPath,
        may_create_folder: bool,
    ) -> Option<&'static KnownPath> {
        let is = |name: &str| path.as_str().strip_suffix(name).is_some_and(|above| above.ends_with('/'));
        let may_contain = |name: &str| name.rsplit_once('/').is_some_and(|(folder, _)| is(folder));
        self.autostart.iter().find(|known| is(known.path) || (may_create_folder && may_contain(known.path)))
    }

    /// Returns the protected paths, in the order in which they were added.
    #[must_use]
    pub fn paths(&self) -> &[CanonicalPath] {
        &self.paths
    }

    /// Returns `true` if a path is protected or inside a protected folder.
    #[must_use]
    pub fn covers(&self, path: &CanonicalPath) -> bool {
        self.lookup(path).innermost.is_some()
    }

    /// Returns the reason a path is closed to a call, or `None` if it is open. `descends` is `true` if the call is
    /// recursive.
    pub(crate) fn closed_reason(
        &self,
        path: &CanonicalPath,
        descends: bool,
        sandbox: Option<&CanonicalPath>,
    ) -> Option<ClosedReason> {
        let found = self.lookup(path);
        // In the session sandbox, protected folders above the sandbox do not count.
        let is_above_sandbox = |depth: usize| {
            let within = sandbox.filter(|sandbox| sandbox.contains(path));
            within.is_some_and(|sandbox| depth <= sandbox.components().count())
        };
        if found.innermost.is_some_and(|depth| !is_above_sandbox(depth)) {
            return Some(ClosedReason::Protected);
        }
        match found.end.filter(|_| descends)? {
            Node { is_protected: true, .. } => Some(ClosedReason::Protected),
            Node { children, .. } => (!children.is_empty()).then_some(ClosedReason::ContainsProtected),
        }
    }

    /// Follows a path through the tree, from the root to the last node on the path.
    fn lookup(&self, path: &CanonicalPath) -> TreeLookup<'_> {
        let mut found = TreeLookup { innermost: self.root.is_protected.then_some(0), end: Some(&self.root) };
        for (depth, name) in path.components().enumerate() {
            found.end = found.end.and_then(|node| node.children.get(name));
            match found.end {
                Some(Node { is_protected: true, .. }) => found.innermost = Some(depth + 1),
                Some(Node { is_protected: false, .. }) => {}
                None => break,
            }
        }
        found
    }
}

/// Result of following a path through the tree.
struct TreeLookup<'a> {
    /// Number of components of the innermost protected path that contains the path.
    innermost: Option<usize>,
    /// Node for the path itself, or `None` if the tree has no such node.
    end: Option<&'a Node>,
}

impl Node {
    const EMPTY: Self = Self { is_protected: false, children: BTreeMap::new() };
}

impl Default for Node {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<CanonicalPath> for ProtectedPaths {
    fn from_iter<I: IntoIterator<Item = CanonicalPath>>(paths: I) -> Self {
        let mut protected = Self { paths: paths.into_iter().collect(), ..Self::default() };
        for path in &protected.paths {
            let mut node = &mut protected.root;
            for name in path.components() {
                node = node.children.entry(name.to_owned()).or_default();
            }
            node.is_protected = true;
        }
        protected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_path() -> impl Strategy<Value = CanonicalPath> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "a-", "a0", "longer-name"]), 0..4)
            .prop_map(|parts| CanonicalPath::assume_canonical(&format!("/{}", parts.join("/"))).unwrap())
    }

    /// Reference implementation of [`ProtectedPaths::closed_reason`] that checks every protected path in turn.
    fn closed_by_scan(
        protected: &[CanonicalPath],
        path: &CanonicalPath,
        descends: bool,
        sandbox: Option<&CanonicalPath>,
    ) -> bool {
        protected.iter().any(|protected| {
            let exempt = sandbox.is_some_and(|sandbox| protected.contains(sandbox) && sandbox.contains(path));
            (descends && path.contains(protected)) || (protected.contains(path) && !exempt)
        })
    }

    #[test]
    fn protected_paths_in_the_session_sandbox_are_closed() {
        let at = |text| CanonicalPath::assume_canonical(text).unwrap();
        let (sandbox, protected) = (at("/s/b"), ProtectedPaths::from_iter([at("/s"), at("/s/b/k")]));
        let closes = |path| protected.closed_reason(&at(path), false, Some(&sandbox));
        assert_eq!(
            [closes("/s/b/k"), closes("/s/b/k/x"), closes("/s/x")],
            [Some(ClosedReason::Protected); 3]
        );
        assert_eq!([closes("/s/b"), closes("/s/b/x"), closes("/s/b/kk")], [None; 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
        #[test]
        fn tree_agrees_with_a_scan_of_all_paths(
            paths in prop::collection::vec(any_path(), 0..5), path in any_path(), descends in any::<bool>(),
            sandbox in prop::option::of(any_path()),
        ) {
            let protected: ProtectedPaths = paths.iter().cloned().collect();
            let closed = protected.closed_reason(&path, descends, sandbox.as_ref());
            prop_assert_eq!(closed.is_some(), closed_by_scan(&paths, &path, descends, sandbox.as_ref()));
            let inside = paths.iter().any(|protected| protected.contains(&path));
            match closed {
                Some(ClosedReason::ContainsProtected) => prop_assert!(paths.iter().any(|p| path.strictly_contains(p))),
                Some(ClosedReason::Protected) => prop_assert!(inside),
                None => {}
            }
            prop_assert_eq!(protected.paths(), paths.as_slice());
        }
    }
}
