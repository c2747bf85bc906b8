//! The files that git runs or reads because a configuration of the person's names them: hooks in a folder of its own, and further
//! configurations.

use std::collections::BTreeSet;

use super::{
    git,
    name_table::{FURTHER_CONFIG, HOOK_FOLDER, KnownName},
    paths::above,
};
use crate::place::is_at_or_below;

/// The most further configurations, one of which can name the next.
const MOST_CONFIGS: usize = 100;

/// Their paths.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigReferences {
    hooks: BTreeSet<String>,
    configs: BTreeSet<String>,
}

impl ConfigReferences {
    /// Adds what a configuration names.
    pub(super) fn add(&mut self, config: &str, text: &[u8], home: Option<&str>) {
        let (hooks, configs) = git::named(text);
        let folder = above(config);
        // Relative to the folder in which hooks run.
        let around = folder.strip_suffix("/.git").unwrap_or(folder);
        let resolve = |folder: &str, path: &str| match (path.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => git::resolve(home, below),
            _ => git::resolve(folder, path),
        };
        self.hooks.extend(hooks.iter().filter_map(|path| resolve(around, path)));
        let room = MOST_CONFIGS.saturating_sub(self.configs.len());
        self.configs.extend(configs.iter().filter_map(|path| resolve(folder, path)).take(room));
    }

    /// The line for a path, and where the part ends that it is for.
    pub(super) fn row(&self, path: &str) -> Option<(KnownName, usize)> {
        if self.configs.contains(path) {
            return Some((FURTHER_CONFIG, path.len()));
        }
        let folder = self.hooks.iter().find(|folder| is_at_or_below(path, folder))?;
        Some((HOOK_FOLDER, folder.len()))
    }

    pub(super) fn hooks(&self) -> impl Iterator<Item = &String> {
        self.hooks.iter()
    }

    pub(super) fn configs(&self) -> impl Iterator<Item = &String> {
        self.configs.iter()
    }

    pub(super) fn retain(&mut self, is_needed: impl Fn(&str) -> bool) {
        self.hooks.retain(|path| is_needed(path));
        self.configs.retain(|path| is_needed(path));
    }
}
