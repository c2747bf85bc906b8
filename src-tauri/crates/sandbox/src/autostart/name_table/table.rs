//! Autostart names from `names.json`, and groups for files that are recognized in other ways.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{ContentCheck, KnownName, NameGroup, NameScope, RunVerdict};

/// JSON list of name groups. Each name cites the source that documents it.
const LIST: &str = include_str!("names.json");

/// Name group as it appears in `names.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedGroup {
    when: &'static str,
    #[serde(rename = "place")]
    scope: NameScope,
    protection: Protection,
    #[serde(default)]
    check: ContentCheck,
    /// Patterns with their sources. A trailing `/` makes a pattern match a folder and everything in it.
    names: Vec<(&'static str, &'static str)>,
}

/// Protection of the files in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Protection {
    /// The user's programs run the file without asking. Existing files are read-only, and new files are quarantined.
    Unasked,
    /// A program asks the user before it runs the file. Existing files are read-only, and new files are reported.
    Asked,
    /// New files are reported, or quarantined in strict mode.
    Strict,
    /// New files are reported and never quarantined.
    Listed,
    /// Package managers often write such files. New files are reported, even among installed packages, and are never
    /// quarantined.
    Installed,
}

/// Listed name with its group.
pub(super) struct ListedName {
    pub(super) pattern: &'static str,
    pub(super) known: KnownName,
}

static GROUPS: LazyLock<Vec<(NameGroup, ListedGroup)>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the list is part of the program, and a test parses it")]
    let listed: Vec<ListedGroup> = serde_json::from_str(LIST).expect("names.json is valid");
    listed.into_iter().map(|group| (group.to_group(), group)).collect()
});

/// Returns all listed names.
pub(super) fn names() -> impl Iterator<Item = ListedName> {
    GROUPS.iter().flat_map(|(group, listed)| {
        listed.names.iter().map(move |(text, _source)| {
            let pattern = text.strip_suffix('/').unwrap_or(text);
            let known = KnownName { name: pattern, folder: pattern.len() < text.len(), group };
            ListedName { pattern, known }
        })
    })
}

impl ListedGroup {
    fn to_group(&self) -> NameGroup {
        let (read_only, verdict, strict) = match self.protection {
            Protection::Unasked => (true, RunVerdict::Automatic, true),
            Protection::Asked => (true, RunVerdict::Reported, true),
            Protection::Strict => (false, RunVerdict::Reported, true),
            Protection::Listed | Protection::Installed => (false, RunVerdict::Reported, false),
        };
        let installed = self.protection == Protection::Installed;
        let Self { when, scope, check, .. } = *self;
        NameGroup { scope, read_only, verdict, check, strict, installed, when }
    }
}

const AUTOMATIC: NameGroup = NameGroup {
    scope: NameScope::Any,
    read_only: true,
    verdict: RunVerdict::Automatic,
    check: ContentCheck::Always,
    strict: true,
    installed: false,
    when: "when you use git in this repository",
};
/// Hooks in any folder to which a git configuration or symlink refers.
pub(super) static HOOKS: NameGroup = NameGroup { check: ContentCheck::Hook, ..AUTOMATIC };
/// Configurations that another git configuration includes.
pub(super) static CONFIG: NameGroup = NameGroup { check: ContentCheck::GitConfig, ..AUTOMATIC };
/// Programs to which a git configuration or a symlink in a hooks folder refers.
pub(super) static PROGRAM: NameGroup = AUTOMATIC;
/// Files at or below the paths that the user has denied.
pub(super) static DENIED: NameGroup =
    NameGroup { when: "when a program uses a path that you denied", ..AUTOMATIC };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_source() {
        for (name, source) in GROUPS.iter().flat_map(|(_, listed)| &listed.names) {
            assert!(source.len() > 4, "{name}: {source}");
        }
    }
}
