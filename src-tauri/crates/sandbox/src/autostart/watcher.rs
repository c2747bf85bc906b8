//! Watches the writable roots of all sandboxes that a process has launched.
//!
//! - A folder is watched once, even if several sandboxes can write to it. All of these sandboxes receive the findings.
//! - The number of reports is limited. After too many findings, the last report states that further reports are
//!   omitted. Unreported files are still handled.

mod config_repair;
mod content_recheck;
mod events;
mod folder_check;
mod judge;
mod quarantining;
mod redirects;
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
    baseline::{
        Baseline, BaselineEntry, BaselineInputs, CoverState, MAX_KEPT_LEN, ReferencedPaths, read_bounded,
    },
    budget::MoveBudgets,
    config_draft,
    config_references::ConfigReferences,
    event_queue::EventQueue,
    file_stamp::FileStamp,
    git,
    git_folders::GitFolders,
    journal::{Journal, UnfinishedJournal},
    name_text::to_os_str,
    paths::{file_name, parent},
    quarantine::disarmed_path,
    reopened_folders::{open_folder, open_reopening},
};
use crate::{nofollow::is_at_or_below, state::StateDir};

/// Interval for rechecking files that are judged by their content.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
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
    last_recheck: Instant,
}

/// Journal of a sandbox after its final check. Until the journal is removed, the next process repeats the check and the
/// reports.
#[derive(Debug)]
#[must_use = "unless the journal is forgotten, the next start checks again"]
pub struct FinishedJournal(Journal);

impl FinishedJournal {
    /// Removes the journal. Call this once all findings are recorded.
    pub fn delete(self) {
        self.0.remove();
    }
}

impl Watcher {
    /// Creates a watcher that stores its journals in the state directory.
    pub fn new(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let state = StateDir::open(path, rustix::process::getuid().as_raw())?;
        state.subdir("autostart")?;
        let (git_folders, references) = (GitFolders::default(), ConfigReferences::default());
        let (contents, digests, last_recheck) = (BTreeMap::new(), RandomState::new(), Instant::now());
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
            last_recheck,
        })
    }

    /// Completes the checks of processes that were killed. Returns the name, findings and journal of each sandbox.
    /// Findings that were already reported are returned again. The journal exists until [`FinishedJournal::delete`] is
    /// called.
    pub fn finish_interrupted(&mut self) -> Vec<(String, Vec<Finding>, Option<FinishedJournal>)> {
        match Journal::adopt_unfinished(&self.state) {
            Ok(unfinished) => {
                unfinished.into_iter().map(|unfinished| self.finish_interrupted_sandbox(unfinished)).collect()
            }
            Err(error) => {
                let reason = format!("failed to check the roots of earlier sandboxes: {error}");
                vec![(String::new(), vec![Finding::Unfinished { reason }], None)]
            }
        }
    }

    fn finish_interrupted_sandbox(
        &mut self,
        unfinished: UnfinishedJournal,
    ) -> (String, Vec<Finding>, Option<FinishedJournal>) {
        // Launchers never use this name for a sandbox.
        let key = format!("\0{}", unfinished.journal.scratch_path().display());
        let entries = unfinished.roots.values().flat_map(|baseline| &baseline.entries);
        let configs = entries.filter_map(|(path, entry)| Some((path.as_str(), entry.config.as_deref()?)));
        self.references.restore(configs, unfinished.rules.home.as_deref());
        let mut found = unfinished.findings;
        // Drops moves that were journaled but not performed.
        found.retain_mut(|finding| match finding {
            Finding::Quarantined { path, moved_to, .. } if !exists(moved_to) => {
                let disarmed = disarmed_path(path, moved_to);
                disarmed.map(|disarmed| *moved_to = disarmed).is_some()
            }
            Finding::Quarantined { .. }
            | Finding::Restored { .. }
            | Finding::AutostartFile { .. }
            | Finding::Unfinished { .. } => true,
        });
        let restored = unfinished.restored.into_iter().filter(|(_, draft)| !exists(draft));
        found.extend(restored.map(|(finding, _)| finding));
        for (path, draft) in &unfinished.drafts {
            if let Ok((dir, _reopened)) = open_reopening(parent(path)) {
                config_draft::remove(&dir, file_name(path), draft);
            }
        }
        let mut sandbox = WatchedSandbox::new(unfinished.rules, unfinished.journal);
        sandbox.roots = unfinished.roots;
        sandbox.approved = unfinished.approved.into_iter().collect();
        self.sandboxes.insert(key.clone(), sandbox);
        let (more, done) = self.finish(&key);
        // Drops findings that are already in the journal.
        let more: Vec<Finding> = more.into_iter().filter(|finding| !found.contains(finding)).collect();
        found.extend(more);
        (unfinished.name, found, done)
    }

    /// Starts watching a sandbox. `name` is the launcher's name for the sandbox.
    pub fn add_sandbox(&mut self, name: &str, rules: AutostartRules) -> io::Result<()> {
        if self.sandboxes.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let journal = Journal::create(&self.state.subdir("autostart")?, name, &rules)?;
        self.sandboxes.insert(name.to_owned(), WatchedSandbox::new(rules, journal));
        Ok(())
    }

    /// Opens a root before it becomes writable. Returns the paths in it that must be read-only.
    pub fn open_root(&mut self, name: &str, root: &str) -> io::Result<Vec<String>> {
        let root = if root == "/" { root } else { root.trim_end_matches('/') };
        let opened = self.open_new_root(name, root);
        if opened.is_err() {
            self.prune();
        }
        opened
    }

    fn open_new_root(&mut self, name: &str, root: &str) -> io::Result<Vec<String>> {
        let sandbox = self.sandboxes.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        if let Some(baseline) = sandbox.roots.get(root) {
            return Ok(baseline.protected_paths().cloned().collect());
        }
        let queue = &mut self.queue;
        let mut folders = 0;
        let mut watch = |path: &str, dir: &OwnedFd| {
            folders += 1;
            if folders <= MAX_FOLDERS { queue.watch_folder(path, dir) } else { Ok(()) }
        };
        let mut baseline = Baseline::record(
            root,
            BaselineInputs {
                names: &sandbox.names,
                git_config: sandbox.rules.git_config,
                git_folders: &mut self.git_folders,
                references: &mut self.references,
                referenced: ReferencedPaths::default(),
                watch: &mut watch,
            },
        )?;
        if folders > MAX_FOLDERS {
            baseline.skipped.push(format!("`{root}` has too many folders, so only the nearest are watched"));
        }
        sandbox.journal.log_open(root, &baseline)?;
        let read_only: Vec<String> = baseline.protected_paths().cloned().collect();
        for reason in &baseline.skipped {
            let reason = format!("{reason}; everything is checked when the sandbox exits");
            sandbox.pending_findings.push(Finding::Unfinished { reason });
        }
        if self.references.user.is_unknown {
            let reason =
                "git did not list your configuration in time, so the files it refers to are not protected"
                    .to_owned();
            sandbox.pending_findings.push(Finding::Unfinished { reason });
        }
        sandbox.roots.insert(root.to_owned(), baseline);
        for path in &read_only {
            let dir = open_folder(parent(path))?;
            self.queue.watch_covered(parent(path), &dir)?;
            self.watch_ancestors(path);
        }
        Ok(read_only)
    }

    /// Closes a root that is no longer writable and returns the findings of its final check.
    pub fn close_root(&mut self, name: &str, root: &str) -> Vec<Finding> {
        let root = if root == "/" { root } else { root.trim_end_matches('/') };
        let findings = self.final_check(name, root);
        if let Some(sandbox) = self.sandboxes.get_mut(name) {
            sandbox.roots.remove(root);
            // Ignores the error: without this entry, the root is checked once more.
            let _ = sandbox.journal.log_close(root);
        }
        self.prune();
        findings
    }

    /// Records that the user approved writing to this exact file.
    pub fn add_approved(&mut self, name: &str, path: &str) {
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
        sandbox.approved.insert(path.to_owned());
        if let Err(error) = sandbox.journal.log_approved(path) {
            let reason = format!("failed to record the answer for `{path}`: {error}");
            sandbox.pending_findings.push(Finding::Unfinished { reason });
        }
    }

    /// Records the paths that are hidden in a sandbox so that their replacement is detected.
    pub fn set_hidden(&mut self, name: &str, paths: &[String]) {
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
        sandbox.hidden = paths.to_vec();
        paths.iter().for_each(|path| self.watch_ancestors(path));
        self.prune();
    }

    /// Watches every folder above a path. Unreadable folders are skipped; the supervisor detects replacements there.
    fn watch_ancestors(&mut self, path: &str) {
        for (at, _) in path.rmatch_indices('/').filter(|(at, _)| *at > 0) {
            let folder = path.get(..at).unwrap_or_default();
            if let Ok(dir) = open_folder(folder) {
                let _ = self.queue.watch_ancestor(folder, &dir);
            }
        }
    }

    /// Reads queued events without blocking and checks files for a limited time. Returns new findings with the names
    /// of their sandboxes.
    pub fn process_events(&mut self) -> Vec<(String, Finding)> {
        self.drain();
        self.check_pending();
        if self.last_recheck.elapsed() >= RECHECK_INTERVAL {
            self.recheck_contents();
        }
        let findings = self.sandboxes.iter_mut().flat_map(|(name, sandbox)| {
            std::mem::take(&mut sandbox.pending_findings).into_iter().map(|finding| (name.clone(), finding))
        });
        findings.collect()
    }

    /// Returns the maximum time to wait for an event before calling [`Watcher::process_events`] anyway, or `None` to
    /// wait indefinitely.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if !self.pending.is_empty() {
            return Some(Duration::ZERO);
        }
        (!self.contents.is_empty()).then_some(RECHECK_INTERVAL)
    }

    /// Returns the sandboxes that may have lost a cover since the last call. The launcher sends `ControlOp::Check` to
    /// each of them.
    pub fn take_uncovered(&mut self) -> Vec<String> {
        let lost = self
            .sandboxes
            .iter_mut()
            .filter_map(|(name, sandbox)| std::mem::take(&mut sandbox.uncovered).then(|| name.clone()));
        lost.collect()
    }

    /// Takes the pending countermeasures, with the names of their sandboxes.
    pub fn take_countermeasures(&mut self) -> Vec<(String, Countermeasure)> {
        let due = self.sandboxes.iter_mut().flat_map(|(name, sandbox)| {
            std::mem::take(&mut sandbox.countermeasures).into_iter().map(|due| (name.clone(), due))
        });
        due.collect()
    }

    /// Records that a sandbox's supervisor has restored all lost covers.
    pub fn masks_restored(&mut self, name: &str) {
        self.drain();
        let is_lost =
            |entry: &BaselineEntry| matches!(entry.cover, CoverState::Replaced | CoverState::Doubtful);
        let roots = self.sandboxes.get(name).map(|sandbox| sandbox.roots.values()).into_iter().flatten();
        let lost = roots.flat_map(|baseline| baseline.entries.iter().filter(|(_, entry)| is_lost(entry)));
        for path in lost.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            // Judges the files that were written while the path was uncovered.
            self.check_path(&path);
            let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
            let entries = sandbox.roots.values_mut().filter_map(|baseline| baseline.entries.get_mut(&path));
            for entry in entries.filter(|entry| is_lost(entry)) {
                let Ok(stamp) = FileStamp::at(CWD, &path) else { continue };
                let dir = open_folder(parent(&path)).ok();
                entry.content = dir.and_then(|dir| read_bounded(&dir, file_name(&path), MAX_KEPT_LEN));
                (entry.stamp, entry.cover) = (stamp, CoverState::Covered);
            }
        }
    }

    /// Runs the final check of a sandbox's roots and stops watching the sandbox. The launcher records the findings,
    /// then calls [`FinishedJournal::delete`] to remove the journal.
    pub fn finish(&mut self, name: &str) -> (Vec<Finding>, Option<FinishedJournal>) {
        let Some(sandbox) = self.sandboxes.get(name) else { return (vec![], None) };
        let roots: Vec<String> = sandbox.roots.keys().cloned().collect();
        let inner = |root: &&String| !roots.iter().any(|other| other != *root && is_at_or_below(root, other));
        let outer: Vec<&String> = roots.iter().filter(inner).collect();
        let mut findings: Vec<Finding> =
            outer.into_iter().flat_map(|root| self.final_check(name, root)).collect();
        let done = self.sandboxes.remove(name).map(|sandbox| {
            findings.extend(sandbox.pending_findings);
            for path in sandbox.approved {
                if let Ok(dir) = open_folder(parent(&path)) {
                    self.update_baselines(&dir, &path);
                }
            }
            FinishedJournal(sandbox.journal)
        });
        self.prune();
        (findings, done)
    }

    /// Records the current file in the baseline of every sandbox that can write to it.
    fn update_baselines(&mut self, dir: &OwnedFd, path: &str) {
        let Ok(stamp) = FileStamp::at(dir, file_name(path)) else { return };
        let text = read_bounded(dir, file_name(path), git::MAX_LEN);
        for sandbox in self.sandboxes.values_mut() {
            let containing = sandbox.roots.iter_mut().filter(|(root, _)| is_in(path, root));
            containing.for_each(|(_, baseline)| baseline.update_entry(path, stamp, text.clone()));
        }
    }

    /// Drops watches and other state that no sandbox needs.
    fn prune(&mut self) {
        let roots: Vec<&String> = self.sandboxes.values().flat_map(|sandbox| sandbox.roots.keys()).collect();
        let covered = self.sandboxes.values().flat_map(|sandbox| {
            let read_only = sandbox.roots.values().flat_map(Baseline::protected_paths);
            read_only.chain(&sandbox.hidden)
        });
        let ancestors: BTreeSet<&str> =
            covered.flat_map(|path| path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at))).collect();
        let in_root = |path: &str| roots.iter().any(|root| is_in(path, root));
        self.queue.retain(|path| in_root(path) || ancestors.contains(path));
        self.git_folders.retain(in_root);
        self.references.retain(in_root);
        self.contents.retain(|path, _| in_root(path));
        self.budgets.prune(self.sandboxes.keys());
    }
}

fn exists(path: &str) -> bool {
    std::fs::symlink_metadata(&*to_os_str(path)).is_ok()
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
