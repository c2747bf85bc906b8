//! Watches the writable roots of all sandboxes that a process has launched.
//!
//! - A folder is watched once, even if several sandboxes can write to it. All of these sandboxes receive the findings.
//! - The number of reports is limited. After too many findings, the last report states that further reports are
//!   omitted. Unreported files are still handled.

mod config_repair;
mod events;
mod folder_check;
mod judge;
mod watched_sandbox;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::RandomState,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use events::PendingPaths;
use rustix::fs::CWD;
use watched_sandbox::{WatchedSandbox, is_in};

use super::{
    AutostartRules, Countermeasure, Finding,
    baseline::{Baseline, BaselineEntry, Cover, MAX_KEPT_LEN, Recording, ReferencedPaths, content},
    budget::MoveBudgets,
    config_draft,
    config_references::ConfigReferences,
    event_queue::EventQueue,
    file_stamp::FileStamp,
    git,
    git_folders::GitFolders,
    journal::{Journal, UnfinishedJournal},
    name_text::raw,
    paths::{above, last},
    quarantine::begun,
    reopened_folders::{open_folder, open_reopening},
};
use crate::{place::is_at_or_below, state::StateDir};

/// Interval for rechecking files that are judged by their content.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of watched folders per root.
const MAX_FOLDERS: usize = 8_192;

/// Watcher of sandboxes' writable roots.
#[derive(Debug)]
pub struct Watcher {
    state: StateDir,
    queue: EventQueue,
    pending: PendingPaths,
    sandboxes: BTreeMap<String, WatchedSandbox>,
    git_folders: GitFolders,
    references: ConfigReferences,
    /// Digests of the files that are judged by their content, by path.
    contents: BTreeMap<String, Option<u64>>,
    digests: RandomState,
    budgets: MoveBudgets,
    /// Time of the last content recheck.
    looked: Instant,
}

/// Journal of a sandbox after its final check. Until the journal is removed, the next process repeats the check and the
/// reports.
#[derive(Debug)]
#[must_use = "unless the journal is forgotten, the next start checks again"]
pub struct FinishedJournal(Journal);

impl FinishedJournal {
    /// Removes the journal. Call this once all findings are recorded.
    pub fn forget(self) {
        self.0.remove();
    }
}

impl Watcher {
    /// Creates a watcher that stores its journals in the state directory.
    pub fn new(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let state = StateDir::open(path, rustix::process::getuid().as_raw())?;
        state.below("autostart")?;
        let (git_folders, references) = (GitFolders::default(), ConfigReferences::default());
        let (contents, digests, looked) = (BTreeMap::new(), RandomState::new(), Instant::now());
        let (queue, pending, sandboxes) = (EventQueue::new()?, PendingPaths::default(), BTreeMap::new());
        let budgets = MoveBudgets::default();
        Ok(Self {
            state,
            queue,
            pending,
            sandboxes,
            git_folders,
            references,
            contents,
            digests,
            budgets,
            looked,
        })
    }

    /// Completes the checks of processes that were killed. Returns the name, findings and journal of each sandbox.
    /// Findings that were already reported are returned again. The journal exists until [`FinishedJournal::forget`] is
    /// called.
    pub fn sweep(&mut self) -> Vec<(String, Vec<Finding>, Option<FinishedJournal>)> {
        match Journal::left(&self.state) {
            Ok(left) => left.into_iter().map(|left| self.finish_left(left)).collect(),
            Err(error) => {
                let reason = format!("failed to check the roots of earlier sandboxes: {error}");
                vec![(String::new(), vec![Finding::Unfinished { reason }], None)]
            }
        }
    }

    fn finish_left(&mut self, left: UnfinishedJournal) -> (String, Vec<Finding>, Option<FinishedJournal>) {
        // Launchers never use this name for a sandbox.
        let key = format!("\0{}", left.journal.scratch().display());
        let entries = left.roots.values().flat_map(|baseline| &baseline.entries);
        let configs = entries.filter_map(|(path, entry)| Some((path.as_str(), entry.config.as_deref()?)));
        self.references.restore(configs, left.rules.home.as_deref());
        let mut found = left.found;
        // Drops moves that were journaled but not performed.
        found.retain_mut(|finding| match finding {
            Finding::Quarantined { path, moved_to, .. } if !is_there(moved_to) => {
                let begun = begun(path, moved_to);
                begun.map(|begun| *moved_to = begun).is_some()
            }
            Finding::Quarantined { .. }
            | Finding::Restored { .. }
            | Finding::Left { .. }
            | Finding::Unfinished { .. } => true,
        });
        let restored = left.restored.into_iter().filter(|(_, draft)| !is_there(draft));
        found.extend(restored.map(|(finding, _)| finding));
        for (path, draft) in &left.drafts {
            if let Ok((dir, _shut)) = open_reopening(above(path)) {
                config_draft::remove(&dir, last(path), draft);
            }
        }
        let mut sandbox = WatchedSandbox::new(left.rules, left.journal);
        sandbox.roots = left.roots;
        sandbox.named = left.named.into_iter().collect();
        self.sandboxes.insert(key.clone(), sandbox);
        let (more, done) = self.finish(&key);
        // Drops findings that are already in the journal.
        let more: Vec<Finding> = more.into_iter().filter(|finding| !found.contains(finding)).collect();
        found.extend(more);
        (left.name, found, done)
    }

    /// Starts watching a sandbox. `name` is the launcher's name for the sandbox.
    pub fn begin(&mut self, name: &str, rules: AutostartRules) -> io::Result<()> {
        if self.sandboxes.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let journal = Journal::begin(&self.state.below("autostart")?, name, &rules)?;
        self.sandboxes.insert(name.to_owned(), WatchedSandbox::new(rules, journal));
        Ok(())
    }

    /// Opens a root before it becomes writable. Returns the paths in it that must be read-only.
    pub fn open(&mut self, name: &str, root: &str) -> io::Result<Vec<String>> {
        let root = if root == "/" { root } else { root.trim_end_matches('/') };
        let opened = self.open_new(name, root);
        if opened.is_err() {
            self.tidy();
        }
        opened
    }

    fn open_new(&mut self, name: &str, root: &str) -> io::Result<Vec<String>> {
        let sandbox = self.sandboxes.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        if let Some(baseline) = sandbox.roots.get(root) {
            return Ok(baseline.closed().cloned().collect());
        }
        let queue = &mut self.queue;
        let mut folders = 0;
        let mut watch = |path: &str, dir: &OwnedFd| {
            folders += 1;
            if folders <= MAX_FOLDERS { queue.folder(path, dir) } else { Ok(()) }
        };
        let mut baseline = Baseline::record(
            root,
            Recording {
                names: &sandbox.names,
                git_config: sandbox.rules.git_config,
                git_folders: &mut self.git_folders,
                references: &mut self.references,
                led: ReferencedPaths::default(),
                watch: &mut watch,
            },
        )?;
        if folders > MAX_FOLDERS {
            baseline.missed.push(format!("`{root}` has too many folders, so only the nearest are watched"));
        }
        sandbox.journal.open(root, &baseline)?;
        let closed: Vec<String> = baseline.closed().cloned().collect();
        for reason in &baseline.missed {
            let reason = format!("{reason}; everything is checked when the sandbox exits");
            sandbox.waiting.push(Finding::Unfinished { reason });
        }
        if self.references.user.unknown {
            let reason =
                "git did not list your configuration in time, so the files it refers to are not protected"
                    .to_owned();
            sandbox.waiting.push(Finding::Unfinished { reason });
        }
        sandbox.roots.insert(root.to_owned(), baseline);
        for path in &closed {
            let dir = open_folder(above(path))?;
            self.queue.covered(above(path), &dir)?;
            self.watch_way(path);
        }
        Ok(closed)
    }

    /// Closes a root that is no longer writable and returns the findings of its final check.
    pub fn close(&mut self, name: &str, root: &str) -> Vec<Finding> {
        let root = if root == "/" { root } else { root.trim_end_matches('/') };
        let findings = self.final_check(name, root);
        if let Some(sandbox) = self.sandboxes.get_mut(name) {
            sandbox.roots.remove(root);
            // Ignores the error: without this entry, the root is checked once more.
            let _ = sandbox.journal.close(root);
        }
        self.tidy();
        findings
    }

    /// Records that the user approved writing to this exact file.
    pub fn named(&mut self, name: &str, path: &str) {
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
        sandbox.named.insert(path.to_owned());
        if let Err(error) = sandbox.journal.named(path) {
            let reason = format!("failed to record the answer for `{path}`: {error}");
            sandbox.waiting.push(Finding::Unfinished { reason });
        }
    }

    /// Records the paths that are hidden in a sandbox, so that their replacement is detected.
    pub fn hidden(&mut self, name: &str, paths: &[String]) {
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
        sandbox.hidden = paths.to_vec();
        paths.iter().for_each(|path| self.watch_way(path));
        self.tidy();
    }

    /// Watches every folder above a path. Unreadable folders are skipped; the supervisor detects replacements there.
    fn watch_way(&mut self, path: &str) {
        for (at, _) in path.rmatch_indices('/').filter(|(at, _)| *at > 0) {
            let folder = path.get(..at).unwrap_or_default();
            if let Ok(dir) = open_folder(folder) {
                let _ = self.queue.around(folder, &dir);
            }
        }
    }

    /// Reads queued events without blocking, and checks files for a limited time. Returns new findings with the names
    /// of their sandboxes.
    pub fn read(&mut self) -> Vec<(String, Finding)> {
        self.drain();
        self.work();
        if self.looked.elapsed() >= AGAIN {
            self.recheck_contents();
        }
        let told = self.sandboxes.iter_mut().flat_map(|(name, sandbox)| {
            std::mem::take(&mut sandbox.waiting).into_iter().map(|finding| (name.clone(), finding))
        });
        told.collect()
    }

    /// Returns the maximum time to wait for an event before calling [`Watcher::read`] anyway, or `None` to wait
    /// indefinitely.
    pub fn patience(&self) -> Option<Duration> {
        if !self.pending.is_empty() {
            return Some(Duration::ZERO);
        }
        (!self.contents.is_empty()).then_some(AGAIN)
    }

    /// Returns the sandboxes that may have lost a cover since the last call. The launcher sends `ControlOp::Check` to
    /// each of them.
    pub fn uncovered(&mut self) -> Vec<String> {
        let lost = self
            .sandboxes
            .iter_mut()
            .filter_map(|(name, sandbox)| std::mem::take(&mut sandbox.uncovered).then(|| name.clone()));
        lost.collect()
    }

    /// Takes the pending countermeasures, with the names of their sandboxes.
    pub fn countermeasures(&mut self) -> Vec<(String, Countermeasure)> {
        let due = self.sandboxes.iter_mut().flat_map(|(name, sandbox)| {
            std::mem::take(&mut sandbox.countermeasures).into_iter().map(|due| (name.clone(), due))
        });
        due.collect()
    }

    /// Records that a sandbox's supervisor has restored all lost covers.
    pub fn covered(&mut self, name: &str) {
        self.drain();
        let is_lost = |entry: &BaselineEntry| matches!(entry.cover, Cover::Replaced | Cover::Doubtful);
        let roots = self.sandboxes.get(name).map(|sandbox| sandbox.roots.values()).into_iter().flatten();
        let lost = roots.flat_map(|baseline| baseline.entries.iter().filter(|(_, entry)| is_lost(entry)));
        for path in lost.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            // Judges the files that were written while the path was uncovered.
            self.consider_at(&path);
            let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
            let entries = sandbox.roots.values_mut().filter_map(|baseline| baseline.entries.get_mut(&path));
            for entry in entries.filter(|entry| is_lost(entry)) {
                let Ok(stamp) = FileStamp::of(CWD, &path) else { continue };
                let dir = open_folder(above(&path)).ok();
                entry.content = dir.and_then(|dir| content(&dir, last(&path), MAX_KEPT_LEN));
                (entry.stamp, entry.cover) = (stamp, Cover::Covered);
            }
        }
    }

    /// Runs the final check of a sandbox's roots and stops watching the sandbox. The launcher records the findings,
    /// then calls [`FinishedJournal::forget`] to remove the journal.
    pub fn finish(&mut self, name: &str) -> (Vec<Finding>, Option<FinishedJournal>) {
        let Some(sandbox) = self.sandboxes.get(name) else { return (vec![], None) };
        let roots: Vec<String> = sandbox.roots.keys().cloned().collect();
        let inner = |root: &&String| !roots.iter().any(|other| other != *root && is_at_or_below(root, other));
        let outer: Vec<&String> = roots.iter().filter(inner).collect();
        let mut findings: Vec<Finding> =
            outer.into_iter().flat_map(|root| self.final_check(name, root)).collect();
        let done = self.sandboxes.remove(name).map(|sandbox| {
            findings.extend(sandbox.waiting);
            for path in sandbox.named {
                if let Ok(dir) = open_folder(above(&path)) {
                    self.settle(&dir, &path);
                }
            }
            FinishedJournal(sandbox.journal)
        });
        self.tidy();
        (findings, done)
    }

    /// Records the current file in the baseline of every sandbox that can write to it.
    fn settle(&mut self, dir: &OwnedFd, path: &str) {
        let Ok(stamp) = FileStamp::of(dir, last(path)) else { return };
        let text = content(dir, last(path), git::MAX_LEN);
        for sandbox in self.sandboxes.values_mut() {
            let around = sandbox.roots.iter_mut().filter(|(root, _)| is_in(path, root));
            around.for_each(|(_, baseline)| baseline.settle(path, stamp, text.clone()));
        }
    }

    /// Drops watches and other state that no sandbox needs.
    fn tidy(&mut self) {
        let roots: Vec<&String> = self.sandboxes.values().flat_map(|sandbox| sandbox.roots.keys()).collect();
        let covered = self.sandboxes.values().flat_map(|sandbox| {
            let closed = sandbox.roots.values().flat_map(Baseline::closed);
            closed.chain(&sandbox.hidden)
        });
        let ways: BTreeSet<&str> =
            covered.flat_map(|path| path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at))).collect();
        let in_root = |path: &str| roots.iter().any(|root| is_in(path, root));
        self.queue.keep(|path| in_root(path) || ways.contains(path));
        self.git_folders.retain(in_root);
        self.references.retain(in_root);
        self.contents.retain(|path, _| in_root(path));
        self.budgets.tidy(self.sandboxes.keys());
    }
}

fn is_there(path: &str) -> bool {
    std::fs::symlink_metadata(&*raw(path)).is_ok()
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
