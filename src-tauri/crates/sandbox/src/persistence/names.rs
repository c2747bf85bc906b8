//! The protected names as one sandbox has them, and what a name in a directory means.

use std::collections::BTreeMap;

use super::{PERSISTENCE_NAMES, is_at_or_below};

/// Those of the names that are directories.
const DIRECTORIES: &[&str] = &[
    ".config/fish",
    ".config/nushell",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    ".git/hooks",
    ".git/info",
    ".git/modules",
    ".git/worktrees",
    ".config/git",
    ".config/emacs",
    ".config/nvim",
    ".config/tmux",
    ".config/zed",
    ".devcontainer",
    ".emacs.d",
    ".idea",
    ".vim",
    ".vscode",
    ".zed",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/skills",
    ".cursor",
    ".gemini/commands",
    ".gemini/extensions",
    ".husky",
];

/// The names that are protected in one sandbox. They have one component or two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    whole: BTreeMap<&'static str, bool>,
    parts: BTreeMap<&'static str, BTreeMap<&'static str, bool>>,
}

/// What a name in a directory means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    /// Nothing to us.
    None,
    /// It is protected with all below it.
    Whole,
    /// A directory in which these names are protected.
    Parts(&'a BTreeMap<&'static str, bool>),
}

impl Names {
    /// All but those that `allow` names.
    pub(crate) fn but(allow: &[String]) -> Self {
        let mut names = Self::default();
        for name in PERSISTENCE_NAMES {
            if allow.iter().any(|allowed| is_at_or_below(name, allowed)) {
                continue;
            }
            let directory = DIRECTORIES.contains(name);
            match name.split_once('/') {
                None => _ = names.whole.insert(name, directory),
                Some((above, part)) => _ = names.parts.entry(above).or_default().insert(part, directory),
            }
        }
        names
    }

    /// What `name` in a directory means; upper and lower case are the same on some file systems, so they are here.
    pub(crate) fn meaning(&self, name: &str) -> Meaning<'_> {
        if !name.starts_with('.') {
            return Meaning::None;
        }
        let name = name.to_ascii_lowercase();
        if self.whole.contains_key(name.as_str()) {
            return Meaning::Whole;
        }
        self.parts.get(name.as_str()).map_or(Meaning::None, Meaning::Parts)
    }

    /// The names of one component, and whether each is a directory.
    pub(crate) fn whole(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.whole.iter().map(|(name, directory)| (*name, *directory))
    }

    /// The directories in which names are protected, with those.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &BTreeMap<&'static str, bool>)> {
        self.parts.iter().map(|(name, parts)| (*name, parts))
    }

    /// The names that are protected in a repository, whatever the name of its directory.
    pub(crate) fn of_repository(&self) -> Option<&BTreeMap<&'static str, bool>> {
        self.parts.get(".git")
    }

    /// Whether `path` is a persistence file or lies within a directory of such.
    pub(crate) fn protect(&self, path: &str) -> bool {
        let components: Vec<&str> = path.split('/').collect();
        components.iter().enumerate().any(|(at, name)| match self.meaning(name) {
            Meaning::None => false,
            Meaning::Whole => true,
            Meaning::Parts(parts) => components.get(at + 1).is_some_and(|part| has(parts, part)),
        })
    }
}

/// Whether `name` is among the parts.
pub(crate) fn has(parts: &BTreeMap<&'static str, bool>, name: &str) -> bool {
    parts.contains_key(name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_protected_by_any_of_its_components() {
        let names = Names::but(&[]);
        for path in
            ["/p/.bashrc", "/p/.vscode/x/y", "/p/.git/hooks", "/p/.GIT/Config", "/p/.git/modules/m/hooks"]
        {
            assert!(names.protect(path), "{path}");
        }
        for path in
            ["/p", "/p/.git", "/p/.git/objects", "/p/bashrc", "/p/.bashrc.d", "/p/hooks", "/p/.config/x"]
        {
            assert!(!names.protect(path), "{path}");
        }
        let names = Names::but(&[".git".into(), ".vscode".into()]);
        assert!(
            !names.protect("/p/.git/hooks") && !names.protect("/p/.vscode/x") && names.protect("/p/.idea")
        );
    }

    #[test]
    fn every_directory_is_one_of_the_names() {
        assert!(DIRECTORIES.iter().all(|directory| PERSISTENCE_NAMES.contains(directory)));
        assert!(PERSISTENCE_NAMES.iter().all(|name| name.split('/').count() <= 2));
    }
}
