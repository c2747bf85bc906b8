//! Autostart files left behind by a sandbox. They are acceptable if they were reported to the user or if no program
//! runs them automatically.

use std::{collections::BTreeSet, fs, path::Path};

use ironcurtain_sandbox::autostart::{Finding, autostart_condition};

use crate::{judge::WRITABLE, scene::Scene};

/// Findings about a launch that were reported to the user.
#[derive(Default)]
pub(crate) struct Left {
    /// Paths of autostart files that were left behind.
    listed: BTreeSet<String>,
    /// Reasons why parts of the scene were not scanned.
    unseen: Vec<String>,
}

impl Left {
    /// Returns the findings of a launch.
    pub(crate) fn of(scene: &Scene) -> Self {
        let found: Vec<Finding> =
            scene.text("found.json").map_or(vec![], |found| serde_json::from_str(&found).unwrap());
        let mut left = Self::default();
        for finding in found {
            match finding {
                Finding::AutostartFile { path, .. } => {
                    let path = path.strip_prefix(scene.base()).unwrap_or(&path);
                    left.listed.insert(path.trim_start_matches('/').to_owned());
                }
                Finding::Unfinished { reason } => left.unseen.push(reason),
                Finding::Quarantined { .. } | Finding::Restored { .. } => {}
            }
        }
        left
    }

    /// Returns `true` if it is acceptable that this autostart file was created, changed or removed. In strict mode, a
    /// file is unacceptable if any program could run it, even at the user's request.
    pub(crate) fn is_in_order(&self, scene: &Scene, path: &str, is_strict: bool) -> bool {
        let real = scene.path(path);
        let text = scene.text(path).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let parent = Path::new(&real).parent().unwrap();
        let found = autostart_condition(&real, Some(&scene.path("work")));
        if Path::new(&real).is_dir() && !Path::new(&real).is_symlink() || self.is_unseen(path) {
            return true;
        }
        match name.as_str() {
            ".git" => return leads_inside(scene, path),
            // The target is scanned too. A complete repository needs no scan.
            "commondir" => return !parent.join("objects").exists(),
            "config" | "config.worktree" => return !text.contains("fsmonitor"),
            _ => {}
        }
        // A folder now has the file's name.
        if found.is_none() && !path.contains("/hooks/") {
            return true;
        }
        if is_strict {
            return false;
        }
        let is_settings = [".json", ".jsonc", ".toml"].iter().any(|end| name.ends_with(end));
        let says_nothing = is_settings && serde_json::from_str::<serde_json::Value>(&text).is_err();
        // In this scene, direnv allows no file.
        let is_listed = says_nothing || name == ".envrc" || found.is_some_and(|found| !found.automatic);
        is_listed && (self.listed.contains(path) || fs::symlink_metadata(&real).is_err())
    }

    /// Returns `true` if a folder that contains the path was reported as not scanned.
    fn is_unseen(&self, path: &str) -> bool {
        let folders = Path::new(path).ancestors().skip(1).filter(|folder| folder.components().count() > 1);
        folders.into_iter().any(|folder| {
            let (folder, name) =
                (folder.display().to_string(), folder.file_name().unwrap().to_string_lossy());
            let above = folder.strip_suffix(&*name).unwrap_or_default().trim_end_matches('/').to_owned();
            let is_text = !name.contains('\u{fffd}');
            let named =
                |folder: &str| self.unseen.iter().any(|reason| reason.contains(&format!("{folder}`")));
            if is_text { named(&folder) } else { named(&above) }
        })
    }
}

/// Returns `true` if a `.git` file or symlink leads to a folder that the sandbox can write to. Such a folder is scanned
/// too.
fn leads_inside(scene: &Scene, path: &str) -> bool {
    let link = fs::read_link(scene.path(path)).ok().and_then(|link| link.into_os_string().into_string().ok());
    let text = link.or_else(|| scene.text(path)).unwrap_or_default();
    let target = Path::new(&scene.path(path)).with_file_name(text.trim_start_matches("gitdir:").trim());
    target.canonicalize().is_ok_and(|target| WRITABLE.iter().any(|part| target.starts_with(scene.path(part))))
}
