//! Looking at folders: new ones, all of them when something was missed, and for the last time.

use std::time::{Duration, Instant};

use rustix::fs::CWD;

use super::{MOST_FOLDERS, Watcher};
use crate::{
    autostart::{
        Finding,
        file_stamp::FileStamp,
        folder_walk::{FolderWalk, WalkBounds, has_signs, is_entered},
        paths::{above, join, last},
        reopened::open_reopening,
    },
    place::is_at_or_below,
};

/// The extent to which a look goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookBounds {
    names: usize,
    time: Duration,
    /// The folders are watched from now on.
    watch: bool,
}

impl LookBounds {
    /// Of a folder that has appeared. What it does not come to is found in the end.
    pub(super) fn appeared() -> Self {
        Self { names: 20_000, time: Duration::from_secs(2), watch: true }
    }

    pub(super) fn again() -> Self {
        Self { names: 50_000, time: Duration::from_secs(5), watch: true }
    }

    fn last() -> Self {
        Self { names: 200_000, time: Duration::from_secs(20), watch: false }
    }
}

impl Watcher {
    /// Judges all in a folder; returns why something was not looked at.
    pub(super) fn look(&mut self, at: &str, bounds: LookBounds) -> Vec<String> {
        let most = WalkBounds { names: bounds.names, folders: bounds.names };
        let mut walk = match FolderWalk::opening(at, most, Instant::now() + bounds.time) {
            Ok(walk) => walk,
            Err(error) => return vec![format!("`{at}` could not be looked into: {error}")],
        };
        let mut watched = if bounds.watch { self.queue.count(at) } else { 0 };
        while let Some((path, dir)) = walk.next() {
            if bounds.watch && watched < MOST_FOLDERS {
                watched += 1;
                if let Err(error) = self.queue.folder(&path, &dir) {
                    self.tell_once(&path, "watch", error.to_string());
                }
            }
            let names = walk.names(&path, &dir);
            let is_git_dir = last(&path).eq_ignore_ascii_case(".git") || has_signs(&names);
            if is_git_dir {
                self.git_dirs.insert(path.clone());
            }
            for (name, is_dir) in names {
                let child = join(&path, &name);
                let is_gone = self.consider(&dir, &child);
                if is_dir && !is_gone && is_entered(&self.git_dirs, &child) {
                    walk.enter(child);
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
        let in_root = |path: &str| root == "/" || is_at_or_below(path, root);
        sandbox.left.retain(|path, _| !in_root(path));
        let missed = match FileStamp::of(CWD, root) {
            Ok(now) if itself.is_dir && now.is_same_file(&itself) => self.look(root, LookBounds::last()),
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
