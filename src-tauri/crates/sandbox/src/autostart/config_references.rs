//! The files that git or another program of the user's runs or reads because a configuration or a link leads to them.
//!
//! - They are known by their paths, whether they exist or not: one that appears later is judged like one that is there.

use std::collections::BTreeMap;

use super::{
    git::{GitTarget, UserConfig},
    name_table::KnownName,
};

/// Their paths, and the names that they stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigReferences {
    targets: BTreeMap<String, KnownName>,
    /// The user's own configuration of git.
    pub(super) user: UserConfig,
}

impl ConfigReferences {
    /// Has a path count as this; returns whether it did not before.
    pub(super) fn insert(&mut self, (path, known): GitTarget) -> bool {
        self.targets.insert(path, known).is_none()
    }

    /// Returns the name that a path stands for, and where the part ends that it is for.
    pub(super) fn row(&self, path: &str) -> Option<(KnownName, usize)> {
        if let Some(known) = self.targets.get(path) {
            return Some((*known, path.len()));
        }
        let above = path.rmatch_indices('/').filter_map(|(end, _)| Some((path.get(..end)?, end)));
        let mut folders = above.filter_map(|(above, end)| Some((*self.targets.get(above)?, end)));
        folders.find(|(known, _)| known.folder).or_else(|| self.everywhere(path))
    }

    /// The name that a path stands for by what the user's configuration names in every work tree.
    pub(super) fn everywhere(&self, path: &str) -> Option<(KnownName, usize)> {
        self.user.relative.iter().find_map(|(name, known)| {
            let mut ends = path.match_indices(name.as_str()).map(|(at, name)| (at, at + name.len()));
            let (_, end) = ends.find(|(at, end)| {
                let ends_there =
                    path.len() == *end || known.folder && path.as_bytes().get(*end) == Some(&b'/');
                ends_there && path.get(..*at).is_some_and(|above| above.ends_with('/'))
            })?;
            Some((*known, end))
        })
    }

    pub(super) fn retain(&mut self, is_needed: impl Fn(&str) -> bool) {
        self.targets.retain(|path, _| is_needed(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autostart::name_table::{GIT_PROGRAM, HOOK_FOLDER};

    #[test]
    fn a_folder_counts_with_all_that_is_in_it_and_a_relative_one_everywhere() {
        let mut references = ConfigReferences::default();
        references.insert(("/r/hooks".into(), HOOK_FOLDER));
        references.insert(("/r/program".into(), GIT_PROGRAM));
        references.user.relative = vec![(".githooks".into(), HOOK_FOLDER), ("tools/run".into(), GIT_PROGRAM)];
        let row = |path: &str| references.row(path).map(|(known, end)| (known.name, end));
        assert_eq!(row("/r/hooks"), Some(("hooks", 8)));
        assert_eq!(row("/r/hooks/pre-commit"), Some(("hooks", 8)));
        assert_eq!(row("/r/program"), Some(("program", 10)));
        assert_eq!(row("/r/a/.githooks/pre-commit"), Some(("hooks", 14)));
        assert_eq!(row("/r/a/tools/run"), Some(("program", 14)));
        for path in ["/r", "/r/hooks2", "/r/program/x", "/r/a.githooks/x", "/r/.githooks2", "/r/tools/run/x"]
        {
            assert_eq!(row(path), None, "{path}");
        }
    }
}
