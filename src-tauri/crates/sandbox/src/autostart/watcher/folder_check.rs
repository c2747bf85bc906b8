//! Checks new folders, whole roots after events were dropped, and roots that are being closed.

use std::time::Duration;

use rustix::fs::CWD;

use super::{MAX_FOLDERS, Watcher, watched_sandbox::is_in};
use crate::autostart::{
    Finding,
    file_stamp::FileStamp,
    folder_walk::{FolderWalk, WalkBounds},
    paths::{above, join},
    reopened_folders::open_reopening,
};

/// Limits for checking a new folder. The final check finds files that these limits exclude.
pub(super) const APPEARED: WalkBounds = bounds(20_000, 2);
/// Limits for checking a whole root after events were dropped.
pub(super) const AGAIN: WalkBounds = bounds(50_000, 5);
const LAST: WalkBounds = bounds(200_000, 20);

const fn bounds(names: usize, seconds: u64) -> WalkBounds {
    WalkBounds { names, folders: names, time: Duration::from_secs(seconds) }
}

impl Watcher {
    /// Judges everything in a folder and keeps watching it. Returns the reasons parts of it were skipped.
    pub(super) fn look(&mut self, at: &str, bounds: WalkBounds) -> Vec<String> {
        let unwatched = MAX_FOLDERS.saturating_sub(self.queue.count(at));
        self.check_watching(at, bounds, unwatched)
    }

    /// Like [`look`](Self::look), but starts watching at most `unwatched` folders.
    fn check_watching(&mut self, at: &str, bounds: WalkBounds, mut unwatched: usize) -> Vec<String> {
        let mut walk = match FolderWalk::new(at, bounds, true) {
            Ok(walk) => walk,
            Err(error) => return vec![format!("failed to list `{at}`: {error}")],
        };
        while let Some((path, dir)) = walk.next() {
            if unwatched > 0 {
                unwatched -= 1;
                if let Err(error) = self.queue.folder(&path, &dir) {
                    self.report_once(&path, "watch", error.to_string());
                }
            }
            let names = walk.names(&path, &dir, &mut self.git_folders);
            for (name, is_dir) in names {
                let child = join(&path, &name);
                let is_gone = self.consider(&dir, &child);
                if is_dir && !is_gone {
                    walk.enter(child, &self.git_folders);
                }
            }
        }
        walk.missed
    }

    /// Runs the final check of one root of a sandbox and returns the findings.
    pub(super) fn final_check(&mut self, name: &str, root: &str) -> Vec<Finding> {
        self.drain();
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return vec![] };
        let Some(baseline) = sandbox.roots.get(root) else { return vec![] };
        let itself = baseline.itself;
        // The user's git configuration may have changed since the root was opened.
        self.references.restore(std::iter::empty(), sandbox.rules.home.as_deref());
        let in_root = |path: &str| is_in(path, root);
        sandbox.left.retain(|path, _| !in_root(path));
        let missed = match FileStamp::of(CWD, root) {
            Ok(now) if itself.is_dir && now.is_same_file(&itself) => self.check_watching(root, LAST, 0),
            // A different folder is now at the path, so it is not checked.
            Ok(_) | Err(_) if itself.is_dir => {
                vec![format!("failed to check `{root}`: it was moved, removed or replaced")]
            }
            Ok(_) | Err(_) => {
                if let Ok((dir, _shut)) = open_reopening(above(root)) {
                    self.consider(&dir, root);
                }
                vec![]
            }
        };
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return vec![] };
        let mut findings = std::mem::take(&mut sandbox.waiting);
        // These findings are added below in their final state.
        findings.retain(|finding| !matches!(finding, Finding::Left { path, .. } if in_root(path)));
        findings.extend(missed.into_iter().map(|reason| Finding::Unfinished { reason }));
        let left = sandbox.left.iter().filter(|(path, _)| in_root(path));
        findings.extend(left.map(|(_, finding)| finding.clone()));
        sandbox.left.retain(|path, _| !in_root(path));
        sandbox.reported.retain(|path| !in_root(path));
        findings
    }

    /// Reports why a part of a path was skipped, once to every sandbox that can write to the path.
    pub(super) fn report_once(&mut self, path: &str, what: &str, reason: String) {
        for sandbox in self.sandboxes.values_mut() {
            if sandbox.around(path).next().is_some() && sandbox.is_news(format!("\0{what}")) {
                sandbox.report(Finding::Unfinished { reason: reason.clone() });
            }
        }
    }
}
