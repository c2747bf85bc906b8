//! Map from paths to values. A search reads its path once and stops at the first name that is not in the map.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    iter,
    path::Path,
};

/// Values of a path and of the paths below it.
#[derive(Debug, Default)]
pub(crate) struct PathTree<T> {
    value: T,
    below: HashMap<OsString, Self>,
}

impl<T: Default> PathTree<T> {
    /// Calls `update` with the values of all folders above the path, outermost first, and returns the value of the path.
    /// Missing values are created.
    pub(crate) fn update(&mut self, path: &Path, update: impl Fn(&mut T)) -> &mut T {
        let mut found = self;
        for name in path {
            update(&mut found.value);
            found = found.below.entry(name.to_owned()).or_default();
        }
        &mut found.value
    }

    /// Returns the values of the prefixes of a path, which consists of `names`: first of the empty path, last of the longest
    /// prefix in the tree.
    pub(crate) fn along<'a>(&self, names: impl IntoIterator<Item = &'a OsStr>) -> impl Iterator<Item = &T> {
        let (mut found, mut names) = (Some(self), names.into_iter());
        iter::from_fn(move || {
            let current = found?;
            found = names.next().and_then(|name| current.below.get(name));
            Some(&current.value)
        })
    }

    /// Returns the value of a path.
    pub(crate) fn get(&self, path: &Path) -> Option<&T> {
        let found = path.iter().try_fold(self, |tree, name| tree.below.get(name));
        found.map(|found| &found.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_along_a_path() {
        let mut tree = PathTree::<u32>::default();
        for (path, value) in [("a/b/c", 3), ("a/x", 4), ("/", 7)] {
            *tree.update(Path::new(path), |above| *above += 1) = value;
        }
        let along = |path: &str| tree.along(Path::new(path)).copied().collect::<Vec<_>>();
        assert_eq!(along(""), [3]);
        assert_eq!(along("a/b/c/d/e"), [3, 2, 1, 3]);
        assert_eq!(along("a/x/b"), [3, 2, 4]);
        assert_eq!(along("ab/b/c"), [3]);
        assert_eq!(along("/a"), [3, 7]);
        let get = |path: &str| tree.get(Path::new(path)).copied();
        assert_eq!([get("a/b/c"), get("a/b"), get(""), get("a/b/c/d")], [Some(3), Some(1), Some(3), None]);
    }
}
