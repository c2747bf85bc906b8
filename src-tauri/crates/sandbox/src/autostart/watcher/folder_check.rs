//! Checks new folders, whole roots after events were dropped, and roots that are being closed.

use std::time::Duration;

use rustix::fs::CWD;

use super::{MAX_FOLDERS, Watcher, watched_sandbox::is_in};
use crate::autostart::{
    Finding,
    file_stamp::FileStamp,
    folder_walk::{FolderWalk, WalkBounds},
    paths::{join, parent},
    reopened_folders::open_reopening,
};

/// Limits for checking a new folder. The final check finds files that these limits exclude.
pub(super) const NEW_FOLDER_BOUNDS: WalkBounds = bounds(20_000, 2);
/// Limits for checking a whole root after events were dropped.
pub(super) const RECHECK_BOUNDS: WalkBounds = bounds(50_000, 5);
const FINAL_BOUNDS: WalkBounds = bounds(200_000, 20);

const fn bounds(names: usize, seconds: u64) -> WalkBounds {
    WalkBounds { names, folders: names, time: Duration::from_secs(seconds) }
}

impl Watcher {
    /// Judges everything in a folder and keeps watching it. Returns the reasons parts of it were skipped.
    pub(super) fn check_folder(&mut self, folder: &str, bounds: WalkBounds) -> Vec<String> {
        let unwatched = MAX_FOLDERS.saturating_sub(self.queue.count(folder));
        self.check_watching(folder, bounds, unwatched)
    }

    /// Like [`check_folder`](Self::check_folder), but starts watching at most `unwatched` folders.
    fn check_watching(&mut self, folder: &str, bounds: WalkBounds, mut unwatched: usize) -> Vec<String> {
        let mut walk = match FolderWalk::new(folder, bounds, true) {
            Ok(walk) => walk,
            Err(error) => return vec![format!("failed to list `{folder}`: {error}")],
        };
        while let Some((path, dir)) = walk.next() {
            if unwatched > 0 {
                unwatched -= 1;
                if let Err(error) = self.queue.watch_folder(&path, &dir) {
                    self.report_once(&path, "watch", error.to_string());
                }
            }
            let names = walk.list_names(&path, &dir, &mut self.git_folders);
            for (name, is_dir) in names {
                let child = join(&path, &name);
                let was_quarantined = self.check_file(&dir, &child);
                if is_dir && !was_quarantined {
                    walk.enqueue(child, &self.git_folders);
                }
            }
        }
        walk.skipped
    }

    /// Runs the final check of one root of a sandbox and returns the findings.
    pub(super) fn final_check(&mut self, name: &str, root: &str) -> Vec<Finding> {
        self.drain();
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return vec![] };
        let Some(baseline) = sandbox.roots.get(root) else { return vec![] };
        let root_stamp = baseline.root_stamp;
        // The user's git configuration may have changed since the root was opened.
        self.references.restore(std::iter::empty(), sandbox.rules.home.as_deref());
        let in_root = |path: &str| is_in(path, root);
        sandbox.autostart_files.retain(|path, _| !in_root(path));
        let skipped = match FileStamp::at(CWD, root) {
            Ok(now) if root_stamp.is_dir && now.is_same_file(&root_stamp) => {
                self.check_watching(root, FINAL_BOUNDS, 0)
            }
            // A different folder is now at the path, so it is not checked.
            Ok(_) | Err(_) if root_stamp.is_dir => {
                vec![format!("failed to check `{root}`: it was moved, removed or replaced")]
            }
            Ok(_) | Err(_) => {
                if let Ok((dir, _reopened)) = open_reopening(parent(root)) {
                    self.check_file(&dir, root);
                }
                vec![]
            }
        };
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return vec![] };
        let mut findings = std::mem::take(&mut sandbox.pending_findings);
        // These findings are added below in their final state.
        findings.retain(|finding| !matches!(finding, Finding::AutostartFile { path, .. } if in_root(path)));
        findings.extend(skipped.into_iter().map(|reason| Finding::Unfinished { reason }));
        let autostart_files = sandbox.autostart_files.iter().filter(|(path, _)| in_root(path));
        findings.extend(autostart_files.map(|(_, finding)| finding.clone()));
        sandbox.autostart_files.retain(|path, _| !in_root(path));
        sandbox.reported.retain(|path| !in_root(path));
        findings
    }

    /// Reports why a part of a path was skipped, once to every sandbox that can write to the path.
    pub(super) fn report_once(&mut self, path: &str, kind: &str, reason: String) {
        for sandbox in self.sandboxes.values_mut() {
            if sandbox.roots_containing(path).next().is_some() && sandbox.is_first_report(format!("\0{kind}"))
            {
                sandbox.report(Finding::Unfinished { reason: reason.clone() });
            }
        }
    }
}
