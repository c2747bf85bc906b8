//! Makes the targets of git configurations and symlinks read-only, because the user's programs run them regardless of
//! their names.
//!
//! - Git configurations are parsed as git parses them, and every conditional include is followed.
//! - Every symlink in a referenced path is made read-only too. A missing file is checked when it is created.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{Baseline, BaselineInputs};
use crate::{
    autostart::{
        config_references::ConfigReferences,
        git::{self, TargetFinder},
        links::{contains_symlink, find_symlinks, resolution_steps},
        name_table::{ContentCheck, GIT_PROGRAM, GIT_TEMPLATE, HOOK_FOLDER, KnownName, home_names},
        name_text::to_os_str,
        paths::{file_name, join, parent},
        reopened_folders::open_folder,
    },
    nofollow::{is_at_or_below, is_below},
};

/// Time limit for reading repository configurations.
const MAX_DURATION: Duration = Duration::from_secs(2);
/// Maximum number of referenced paths.
const MAX_PATHS: usize = 2_000;

/// Paths in or above a root to which configurations or symlinks refer.
#[derive(Debug, Default)]
pub(in crate::autostart) struct ReferencedPaths {
    root: String,
    paths: BTreeMap<String, KnownName>,
    /// Top folders of the work trees that were found. Each contains a `.git`.
    pub(super) work_trees: Vec<String>,
}

/// Git folders of a work tree.
struct GitDirs {
    own: String,
    /// Folder with the hooks and configuration, which other work trees may share.
    common: String,
}

impl ReferencedPaths {
    /// Returns `true` if a path is a recorded reference, or a symlink in the path of a recorded reference.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    /// Records a reference to a path and to every symlink in that path.
    pub(super) fn add(&mut self, references: &mut ConfigReferences, path: &str, known: KnownName) {
        let steps = resolution_steps(path);
        let real = steps.last().cloned().unwrap_or_default();
        for step in steps {
            let is_near = is_at_or_below(&step, &self.root) || is_at_or_below(&self.root, &step);
            if is_near && self.paths.len() < MAX_PATHS && self.paths.insert(step.clone(), known).is_none() {
                references.insert((step, known));
            }
        }
        if known.folder && known.group.check == ContentCheck::Hook {
            self.add_hook_targets(references, &real);
        }
    }

    /// Records the targets of symlinks in a hooks folder as programs.
    fn add_hook_targets(&mut self, references: &mut ConfigReferences, folder: &str) {
        for link in find_symlinks(folder) {
            let known = if is_folder(&link) { GIT_TEMPLATE } else { GIT_PROGRAM };
            self.add(references, &link, known);
        }
    }
}

impl BaselineInputs<'_> {
    /// Records the references known before the root is walked: those in the user's git configuration, and the targets
    /// of symlinks in the home directory.
    pub(super) fn add_from_home(&mut self, root: &str) {
        root.clone_into(&mut self.referenced.root);
        let Some(home) = self.names.home().map(str::to_owned) else { return };
        self.references.user.refresh(&home);
        for (path, known) in self.references.user.found.clone() {
            self.referenced.add(self.references, &path, known);
        }
        for known in home_names() {
            let path = join(&home, known.name);
            let links = if contains_symlink(&path) {
                vec![path]
            } else if known.folder {
                find_symlinks(&path)
            } else {
                vec![]
            };
            // Includes only targets inside the root, for example an editor extension that the user is developing.
            let is_inside =
                |link: &String| resolution_steps(link).last().is_some_and(|real| is_below(real, root));
            for link in links.into_iter().filter(is_inside) {
                self.referenced.add(self.references, &link, KnownName { folder: is_folder(&link), ..known });
            }
        }
    }

    /// Records the references of the repository that contains the root, if any.
    pub(super) fn add_from_enclosing(&mut self, root: &str) {
        let folders = root.rmatch_indices('/').filter_map(|(end, _)| root.get(..end));
        let work_tree = folders.into_iter().find(|folder| exists(&join(folder, ".git")));
        if let Some(work_tree) = work_tree {
            self.add_work_tree(&mut BTreeSet::new(), work_tree);
            for (path, known) in self.references.user.relative.clone() {
                self.referenced.add(self.references, &join(work_tree, &path), known);
            }
        }
    }

    /// Records the references in a work tree's repository and adds its git folders to `seen_git_dirs`.
    fn add_work_tree(&mut self, seen_git_dirs: &mut BTreeSet<String>, work_tree: &str) {
        let Some(GitDirs { own, common }) = find_git_dirs(work_tree) else { return };
        self.add_repository(&common, &own, work_tree);
        seen_git_dirs.extend([own, common]);
    }

    /// Records the references in a repository whose programs run in the folder `work_tree`.
    fn add_repository(&mut self, common: &str, own: &str, work_tree: &str) {
        let mut finder = TargetFinder::new(self.names.home());
        for config in [join(common, "config"), join(own, "config.worktree")] {
            let text = git::read_config(&config).unwrap_or_default();
            finder.add_config(&config, &text, Some(work_tree));
        }
        for (path, known) in finder.found {
            self.referenced.add(self.references, &path, known);
        }
        let hooks = join(common, "hooks");
        if self.names.find(&hooks, |path| path == common).is_none() {
            return;
        }
        if contains_symlink(&hooks) {
            self.referenced.add(self.references, &hooks, HOOK_FOLDER);
        } else {
            self.referenced.add_hook_targets(self.references, &hooks);
        }
    }
}

impl Baseline {
    /// Makes every referenced file in the root read-only.
    pub(super) fn protect_referenced(&mut self, root: &str, inputs: &mut BaselineInputs<'_>) {
        let deadline = Instant::now() + MAX_DURATION;
        let mut seen_git_dirs = BTreeSet::new();
        let work_trees = std::mem::take(&mut inputs.referenced.work_trees);
        let configs: Vec<String> =
            self.entries.keys().filter(|path| file_name(path).starts_with("config")).cloned().collect();
        for work_tree in work_trees {
            if Instant::now() > deadline {
                return self.skipped.push(format!("`{root}` has too many repositories"));
            }
            inputs.add_work_tree(&mut seen_git_dirs, &work_tree);
        }
        // Bare repositories have a configuration but no work tree.
        for dir in configs.iter().map(|config| parent(config)).collect::<BTreeSet<_>>() {
            if inputs.git_folders.contains(dir)
                && seen_git_dirs.insert(dir.to_owned())
                && Instant::now() <= deadline
            {
                inputs.add_repository(dir, dir, dir);
            }
        }
        self.protect_paths(root, inputs);
    }

    fn protect_paths(&mut self, root: &str, inputs: &mut BaselineInputs<'_>) {
        let mut done = BTreeSet::new();
        loop {
            let is_new = |path: &String| is_at_or_below(path, root) && path != root && !done.contains(path);
            let next = inputs.referenced.paths.iter().find(|(path, _)| is_new(path));
            let Some((path, known)) = next.map(|(path, known)| (path.clone(), *known)) else { return };
            if !self.entries.contains_key(&path)
                && let Ok(dir) = open_folder(parent(&path))
            {
                // Ignores the error: an unwatched folder is checked when the root is closed.
                let _ = (inputs.watch)(parent(&path), &dir);
                self.add(&dir, &path, &known, inputs);
            }
            done.insert(path);
        }
    }
}

impl ConfigReferences {
    /// Restores the journaled references of a killed process and adds those in the user's current configuration.
    pub(in crate::autostart) fn restore<'a>(
        &mut self,
        configs: impl Iterator<Item = (&'a str, &'a str)>,
        home: Option<&str>,
    ) {
        let mut finder = TargetFinder::new(home);
        for (path, text) in configs {
            let folder = parent(path);
            finder.add_config(path, text.as_bytes(), Some(folder.strip_suffix("/.git").unwrap_or(folder)));
        }
        if let Some(home) = home {
            self.user.refresh(home);
        }
        let found = finder.found.into_iter().chain(self.user.found.clone());
        for (path, known) in found.collect::<Vec<_>>() {
            resolution_steps(&path).into_iter().for_each(|step| _ = self.insert((step, known)));
        }
    }
}

/// Returns the git folders of the work tree at `work_tree`, whose `.git` may be a folder, file or symlink.
fn find_git_dirs(work_tree: &str) -> Option<GitDirs> {
    let git = join(work_tree, ".git");
    let own = if std::fs::metadata(&*to_os_str(&git)).ok()?.is_dir() {
        git
    } else {
        let text = String::from_utf8(git::read_config(&git)?).ok()?;
        resolve_in(work_tree, text.strip_prefix("gitdir:")?.trim())
    };
    let common = git::read_config(&join(&own, "commondir")).and_then(|text| String::from_utf8(text).ok());
    let common = common.map_or_else(|| own.clone(), |text| resolve_in(&own, text.trim()));
    Some(GitDirs { own: final_target(own), common: final_target(common) })
}

fn resolve_in(folder: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { join(folder, path) }
}

fn final_target(path: String) -> String {
    resolution_steps(&path).pop().unwrap_or(path)
}

fn is_folder(path: &str) -> bool {
    std::fs::metadata(&*to_os_str(path)).is_ok_and(|metadata| metadata.is_dir())
}

fn exists(path: &str) -> bool {
    std::fs::symlink_metadata(&*to_os_str(path)).is_ok()
}
