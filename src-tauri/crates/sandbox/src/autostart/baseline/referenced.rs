//! Makes the targets of git configurations and symlinks read-only, because the user's programs run them regardless of
//! their names.
//!
//! - Git configurations are parsed as git parses them, and every conditional include is followed.
//! - Every symlink in a referenced path is made read-only too. A missing file is checked when it is created.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{Baseline, Recording};
use crate::{
    autostart::{
        config_references::ConfigReferences,
        git::{self, TargetFinder},
        links::{is_linked, links_in, way},
        name_table::{ContentCheck, GIT_PROGRAM, GIT_TEMPLATE, HOOK_FOLDER, KnownName, home_names},
        name_text::raw,
        paths::{above, join, last},
        reopened_folders::open_folder,
    },
    place::{is_at_or_below, is_below},
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
    pub(super) tops: Vec<String>,
}

/// Git folders of a work tree.
struct GitPlaces {
    own: String,
    /// Folder with the hooks and configuration, which other work trees may share.
    common: String,
}

impl ReferencedPaths {
    /// Returns `true` if a path is a recorded reference, or a symlink in the path of a recorded reference.
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    /// Records a reference to a path and to every symlink in that path.
    pub(super) fn lead(&mut self, references: &mut ConfigReferences, path: &str, known: KnownName) {
        let steps = way(path);
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
        for link in links_in(folder) {
            let known = if is_folder(&link) { GIT_TEMPLATE } else { GIT_PROGRAM };
            self.lead(references, &link, known);
        }
    }
}

impl Recording<'_> {
    /// Records the references known before the root is walked: those in the user's git configuration, and the targets
    /// of symlinks in the home directory.
    pub(super) fn add_from_home(&mut self, root: &str) {
        root.clone_into(&mut self.led.root);
        let Some(home) = self.names.home().map(str::to_owned) else { return };
        self.references.user.refresh(&home);
        for (path, known) in self.references.user.found.clone() {
            self.led.lead(self.references, &path, known);
        }
        for known in home_names() {
            let path = join(&home, known.name);
            let links = if is_linked(&path) {
                vec![path]
            } else if known.folder {
                links_in(&path)
            } else {
                vec![]
            };
            // Includes only targets inside the root, for example an editor extension that the user is developing.
            let is_inside = |link: &String| way(link).last().is_some_and(|real| is_below(real, root));
            for link in links.into_iter().filter(is_inside) {
                self.led.lead(self.references, &link, KnownName { folder: is_folder(&link), ..known });
            }
        }
    }

    /// Records the references of the repository that contains the root, if any.
    pub(super) fn add_from_around(&mut self, root: &str) {
        let folders = root.rmatch_indices('/').filter_map(|(end, _)| root.get(..end));
        let top = folders.into_iter().find(|folder| is_there(&join(folder, ".git")));
        if let Some(top) = top {
            self.add_from_top(&mut BTreeSet::new(), top);
            for (path, known) in self.references.user.relative.clone() {
                self.led.lead(self.references, &join(top, &path), known);
            }
        }
    }

    /// Records the references in a work tree's repository, and adds its git folders to `places`.
    fn add_from_top(&mut self, places: &mut BTreeSet<String>, top: &str) {
        let Some(GitPlaces { own, common }) = git_places(top) else { return };
        self.add_from_git(&common, &own, top);
        places.extend([own, common]);
    }

    /// Records the references in a repository whose programs run in the folder `top`.
    fn add_from_git(&mut self, common: &str, own: &str, top: &str) {
        let mut finder = TargetFinder::new(self.names.home());
        for config in [join(common, "config"), join(own, "config.worktree")] {
            let text = git::read_config(&config).unwrap_or_default();
            finder.add_config(&config, &text, Some(top));
        }
        for (path, known) in finder.found {
            self.led.lead(self.references, &path, known);
        }
        let hooks = join(common, "hooks");
        if self.names.find(&hooks, |path| path == common).is_none() {
            return;
        }
        if is_linked(&hooks) {
            self.led.lead(self.references, &hooks, HOOK_FOLDER);
        } else {
            self.led.add_hook_targets(self.references, &hooks);
        }
    }
}

impl Baseline {
    /// Makes every referenced file in the root read-only.
    pub(super) fn close_referenced(&mut self, root: &str, recording: &mut Recording<'_>) {
        let until = Instant::now() + MAX_DURATION;
        let mut places = BTreeSet::new();
        let tops = std::mem::take(&mut recording.led.tops);
        let configs: Vec<String> =
            self.entries.keys().filter(|path| last(path).starts_with("config")).cloned().collect();
        for top in tops {
            if Instant::now() > until {
                return self.missed.push(format!("`{root}` has too many repositories"));
            }
            recording.add_from_top(&mut places, &top);
        }
        // Bare repositories have a configuration but no work tree.
        for dir in configs.iter().map(|config| above(config)).collect::<BTreeSet<_>>() {
            if recording.git_folders.holds(dir) && places.insert(dir.to_owned()) && Instant::now() <= until {
                recording.add_from_git(dir, dir, dir);
            }
        }
        self.add_led_paths(root, recording);
    }

    fn add_led_paths(&mut self, root: &str, recording: &mut Recording<'_>) {
        let mut done = BTreeSet::new();
        loop {
            let is_new = |path: &String| is_at_or_below(path, root) && path != root && !done.contains(path);
            let next = recording.led.paths.iter().find(|(path, _)| is_new(path));
            let Some((path, known)) = next.map(|(path, known)| (path.clone(), *known)) else { return };
            if !self.entries.contains_key(&path)
                && let Ok(dir) = open_folder(above(&path))
            {
                // Ignores the error: an unwatched folder is checked when the root is closed.
                let _ = (recording.watch)(above(&path), &dir);
                self.add(&dir, &path, &known, recording);
            }
            done.insert(path);
        }
    }
}

impl ConfigReferences {
    /// Restores the journaled references of a killed process, and adds those in the user's current configuration.
    pub(in crate::autostart) fn restore<'a>(
        &mut self,
        configs: impl Iterator<Item = (&'a str, &'a str)>,
        home: Option<&str>,
    ) {
        let mut finder = TargetFinder::new(home);
        for (path, text) in configs {
            let folder = above(path);
            finder.add_config(path, text.as_bytes(), Some(folder.strip_suffix("/.git").unwrap_or(folder)));
        }
        if let Some(home) = home {
            self.user.refresh(home);
        }
        let found = finder.found.into_iter().chain(self.user.found.clone());
        for (path, known) in found.collect::<Vec<_>>() {
            way(&path).into_iter().for_each(|step| _ = self.insert((step, known)));
        }
    }
}

/// Returns the git folders of the work tree at `top`, whose `.git` may be a folder, file or symlink.
fn git_places(top: &str) -> Option<GitPlaces> {
    let git = join(top, ".git");
    let own = if std::fs::metadata(&*raw(&git)).ok()?.is_dir() {
        git
    } else {
        let text = String::from_utf8(git::read_config(&git)?).ok()?;
        in_folder(top, text.strip_prefix("gitdir:")?.trim())
    };
    let common = git::read_config(&join(&own, "commondir")).and_then(|text| String::from_utf8(text).ok());
    let common = common.map_or_else(|| own.clone(), |text| in_folder(&own, text.trim()));
    Some(GitPlaces { own: real(own), common: real(common) })
}

fn in_folder(folder: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { join(folder, path) }
}

fn real(path: String) -> String {
    way(&path).pop().unwrap_or(path)
}

fn is_folder(path: &str) -> bool {
    std::fs::metadata(&*raw(path)).is_ok_and(|about| about.is_dir())
}

fn is_there(path: &str) -> bool {
    std::fs::symlink_metadata(&*raw(path)).is_ok()
}
