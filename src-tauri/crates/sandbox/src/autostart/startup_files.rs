//! Recognizes autostart files that cannot be recognized by name: files in bare repositories, and targets of symlinks in
//! the home directory or of the user's git configuration.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    AutostartCondition,
    git::UserConfig,
    links::{contains_symlink, find_symlinks, resolution_steps},
    name_table::{GIT_PROGRAM, HOOK_FOLDER, KnownName, NameTable, RunVerdict, home_names, is_git_by_name},
    paths::{file_name, join, parent},
};
use crate::nofollow::is_below;

/// Time after which the targets are determined again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of targets.
const MAX_TARGETS: usize = 2_000;

/// Autostart files of one user, determined from the files on disk.
#[derive(Debug)]
pub struct StartupFiles {
    home: String,
    targets: Mutex<Targets>,
}

/// Paths that symlinks and configurations refer to.
#[derive(Debug, Default)]
struct Targets {
    refreshed_at: Option<Instant>,
    git: UserConfig,
    found: Vec<(String, KnownName)>,
}

impl StartupFiles {
    /// Creates a recognizer for a user's home directory.
    #[must_use]
    pub fn new(home: String) -> Self {
        Self { home, targets: Mutex::default() }
    }

    /// Like [`autostart_condition`](super::autostart_condition), but also checks files on disk. `path` must not contain
    /// symlinks. Blocking.
    pub fn autostart_condition(&self, path: &str) -> Option<AutostartCondition> {
        let by_name = NameTable::for_home(Some(&self.home)).find(path, is_git).map(|(known, _)| known);
        let completes = || completes_repository(path).then_some(HOOK_FOLDER);
        let known = by_name.or_else(|| self.target(path)).or_else(completes)?;
        Some(AutostartCondition {
            when: known.group.when,
            automatic: known.group.verdict == RunVerdict::Automatic,
        })
    }

    fn target(&self, path: &str) -> Option<KnownName> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.refreshed_at.is_none_or(|refreshed_at| refreshed_at.elapsed() >= REFRESH_INTERVAL) {
            targets.refresh(&self.home);
        }
        let covers_path =
            |(target, known): &&(String, KnownName)| target == path || known.folder && is_below(path, target);
        let by_path = targets.found.iter().find(covers_path).map(|(_, known)| *known);
        let find_relative = || targets.git.find_relative(path).map(|(known, _)| known);
        // If the user's configuration is unknown, git might run any file.
        let might_run = || targets.git.is_unknown.then_some(GIT_PROGRAM);
        by_path.or_else(find_relative).or_else(might_run)
    }
}

impl Targets {
    fn refresh(&mut self, home: &str) {
        self.git.refresh(home);
        let by_git = self.git.found.iter().cloned();
        let by_links = home_names().flat_map(|known| {
            let path = join(home, known.name);
            let links = match (contains_symlink(&path), known.folder) {
                (true, _) => vec![path],
                (false, true) => find_symlinks(&path),
                (false, false) => vec![],
            };
            links.into_iter().map(move |link| {
                let folder = Path::new(&link).is_dir();
                (link, KnownName { folder, ..known })
            })
        });
        // Symlinks in a path are targets too, because they could be replaced.
        let steps = by_git
            .chain(by_links)
            .flat_map(|(path, known)| resolution_steps(&path).into_iter().map(move |step| (step, known)));
        self.found = steps.take(MAX_TARGETS).collect();
        self.refreshed_at = Some(Instant::now());
    }
}

/// Returns `true` if git treats a folder as a repository.
fn is_git(folder: &str) -> bool {
    let has = |name: &str| Path::new(folder).join(name).symlink_metadata().is_ok();
    is_git_by_name(folder) || has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns `true` if a new file can turn its folder into a repository, in which git runs programs.
fn completes_repository(path: &str) -> bool {
    ["HEAD", "commondir"].contains(&file_name(path)) && !is_git(parent(path))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn targets_of_links_and_configurations_and_bare_repositories_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let at = |name: &str| join(&home, name);
        for folder in ["dotfiles", "hooks", "bare.git/objects", "bare.git/refs", ".config", "started"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        symlink("dotfiles/bashrc", at(".bashrc")).unwrap();
        symlink(at("started"), at(".config/autostart")).unwrap();
        fs::write(at("bare.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(at(".gitconfig"), format!("[core]\nhooksPath = {}\n", at("hooks"))).unwrap();
        let files = StartupFiles::new(home.clone());
        let runs = |name: &str| files.autostart_condition(&at(name)).is_some();
        for name in [
            "dotfiles/bashrc",
            "started/a.desktop",
            "hooks/pre-commit",
            "bare.git/hooks/post-update",
            "bare.git/config",
            "new/HEAD",
            ".bashrc",
            ".git/hooks/pre-commit",
        ] {
            assert!(runs(name), "{name}");
        }
        for name in [
            "dotfiles/notes",
            "hooked",
            "bare.git/objects/aa/bb",
            "plain/config",
            "plain/hooks/x",
            ".git/HEAD",
        ] {
            assert!(!runs(name), "{name}");
        }
    }

    #[test]
    fn relative_hooks_path_applies_to_every_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let config = join(&home, ".gitconfig");
        let hook = join(&home, "src/project/.githooks/pre-commit");
        let runs = |path: &str| StartupFiles::new(home.clone()).autostart_condition(path).is_some();
        assert!(!runs(&hook), "no configuration refers to the folder");
        fs::write(&config, "[core]\nhooksPath = .githooks\n").unwrap();
        assert!(runs(&hook));
        assert!(!runs(&join(&home, "src/project/githooks/pre-commit")));
    }

    #[test]
    fn every_file_runs_later_while_the_configuration_is_unknown() {
        let files = StartupFiles::new("/home/user".to_owned());
        // The time is in the future so that a slow test does not determine the targets again.
        let refreshed_at = Some(Instant::now() + Duration::from_secs(3600));
        let mut targets = Targets { refreshed_at, ..Targets::default() };
        targets.git.is_unknown = true;
        *files.targets.lock().unwrap() = targets;
        assert!(files.autostart_condition("/home/user/notes.txt").is_some());
    }
}
