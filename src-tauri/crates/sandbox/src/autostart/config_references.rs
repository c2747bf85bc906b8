//! Files that programs run or read because a git configuration or a symlink refers to them.
//!
//! - A referenced path need not exist. A file that is created there later is judged in the same way.

use std::collections::BTreeMap;

use super::{
    git::{GitTarget, UserConfig},
    name_table::KnownName,
};

/// Referenced paths and their kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigReferences {
    targets: BTreeMap<String, KnownName>,
    /// References in the user's own git configuration.
    pub(super) user: UserConfig,
}

impl ConfigReferences {
    /// Records a reference. Returns `true` if it is new.
    pub(super) fn insert(&mut self, (path, known): GitTarget) -> bool {
        self.targets.insert(path, known).is_none()
    }

    /// Returns the kind of the reference to `path` or to a folder above it, and the length of the referenced path.
    pub(super) fn find(&self, path: &str) -> Option<(KnownName, usize)> {
        if let Some(known) = self.targets.get(path) {
            return Some((*known, path.len()));
        }
        let above = path.rmatch_indices('/').filter_map(|(end, _)| Some((path.get(..end)?, end)));
        let mut folders = above.filter_map(|(above, end)| Some((*self.targets.get(above)?, end)));
        folders.find(|(known, _)| known.folder).or_else(|| self.user.find_relative(path))
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
    fn folder_reference_covers_content_and_relative_one_applies_everywhere() {
        let mut references = ConfigReferences::default();
        references.insert(("/r/hooks".into(), HOOK_FOLDER));
        references.insert(("/r/program".into(), GIT_PROGRAM));
        references.user.relative = vec![(".githooks".into(), HOOK_FOLDER), ("tools/run".into(), GIT_PROGRAM)];
        let row = |path: &str| references.find(path).map(|(known, end)| (known.name, end));
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
