//! Looking at folders: new ones, all of them when something was missed, and for the last time.

use std::time::Duration;

use rustix::fs::CWD;

use super::{MOST_FOLDERS, Watcher, watched_sandbox::is_in};
use crate::autostart::{
    Finding,
    file_stamp::FileStamp,
    folder_walk::{FolderWalk, WalkBounds},
    paths::{above, join},
    reopened::open_reopening,
};

/// The bounds of a look at a folder that has appeared. What it does not come to is found in the end.
pub(super) const APPEARED: WalkBounds = bounds(20_000, 2);
/// The bounds of a look at a whole root because something was not told.
pub(super) const AGAIN: WalkBounds = bounds(50_000, 5);
const LAST: WalkBounds = bounds(200_000, 20);

const fn bounds(names: usize, seconds: u64) -> WalkBounds {
    WalkBounds { names, folders: names, time: Duration::from_secs(seconds) }
}

impl Watcher {
    /// Judges all in a folder, which is watched from then on; returns why something was not looked at.
    pub(super) fn look(&mut self, at: &str, bounds: WalkBounds) -> Vec<String> {
        let unwatched = MOST_FOLDERS.saturating_sub(self.queue.count(at));
        self.look_watching(at, bounds, unwatched)
    }

    /// The same, with no more than so many folders watched.
    fn look_watching(&mut self, at: &str, bounds: WalkBounds, mut unwatched: usize) -> Vec<String> {
        let mut walk = match FolderWalk::new(at, bounds, true) {
            Ok(walk) => walk,
            Err(error) => return vec![format!("`{at}` could not be looked into: {error}")],
        };
        while let Some((path, dir)) = walk.next() {
            if unwatched > 0 {
                unwatched -= 1;
                if let Err(error) = self.queue.folder(&path, &dir) {
                    self.tell_once(&path, "watch", error.to_string());
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

    /// The last look of a sandbox at one of its roots.
    pub(super) fn last_look(&mut self, name: &str, root: &str) -> Vec<Finding> {
        self.drain();
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return vec![] };
        let Some(baseline) = sandbox.roots.get(root) else { return vec![] };
        let itself = baseline.itself;
        // The user may have changed it meanwhile.
        self.references.restore(std::iter::empty(), sandbox.rules.home.as_deref());
        let in_root = |path: &str| is_in(path, root);
        sandbox.left.retain(|path, _| !in_root(path));
        let missed = match FileStamp::of(CWD, root) {
            Ok(now) if itself.is_dir && now.is_same_file(&itself) => self.look_watching(root, LAST, 0),
            // Something else at its path is not ours to look at, whoever put it there.
            Ok(_) | Err(_) if itself.is_dir => {
                vec![format!("`{root}` could not be looked at: another folder is there by now, or none")]
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
        // Told as they are in the end.
        findings.retain(|finding| !matches!(finding, Finding::Left { path, .. } if in_root(path)));
        findings.extend(missed.into_iter().map(|reason| Finding::Unfinished { reason }));
        let left = sandbox.left.iter().filter(|(path, _)| in_root(path));
        findings.extend(left.map(|(_, finding)| finding.clone()));
        sandbox.left.retain(|path, _| !in_root(path));
        sandbox.told.retain(|path| !in_root(path));
        findings
    }

    /// Tells every sandbox that a path concerns why something was not done, once.
    pub(super) fn tell_once(&mut self, path: &str, what: &str, reason: String) {
        for sandbox in self.sandboxes.values_mut() {
            if sandbox.around(path).next().is_some() && sandbox.is_news(format!("\0{what}")) {
                sandbox.tell(Finding::Unfinished { reason: reason.clone() });
            }
        }
    }
}
