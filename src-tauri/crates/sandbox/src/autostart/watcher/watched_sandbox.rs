//! State of one watched sandbox.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    autostart::{
        AutostartRules, Countermeasure, Finding,
        baseline::Baseline,
        budget::{MOVES_UNTIL_READ_ONLY, MoveLimit},
        journal::Journal,
        name_table::NameTable,
    },
    nofollow::is_at_or_below,
};

/// Maximum number of findings reported per sandbox.
const MAX_REPORTED: usize = 1_000;

/// Rules, roots and findings of a watched sandbox.
#[derive(Debug)]
pub(super) struct WatchedSandbox {
    pub(super) rules: AutostartRules,
    pub(super) names: NameTable,
    pub(super) journal: Journal,
    pub(super) roots: BTreeMap<String, Baseline>,
    pub(super) approved: BTreeSet<String>,
    pub(super) hidden: Vec<String>,
    /// Findings about autostart files that were left in place, by path.
    pub(super) autostart_files: BTreeMap<String, Finding>,
    /// Findings to return from the next read.
    pub(super) pending_findings: Vec<Finding>,
    /// Already reported paths, some combined with a configuration key.
    pub(super) reported: BTreeSet<String>,
    pub(super) count: usize,
    pub(super) uncovered: bool,
    /// Countermeasures for the launcher to take.
    pub(super) countermeasures: Vec<Countermeasure>,
    /// `true` once the launcher was asked to terminate the sandbox.
    is_terminating: bool,
}

impl WatchedSandbox {
    pub(super) fn new(rules: AutostartRules, journal: Journal) -> Self {
        let names = NameTable::new(&rules);
        let (roots, autostart_files) = (BTreeMap::new(), BTreeMap::new());
        let (approved, reported) = (BTreeSet::new(), BTreeSet::new());
        let (hidden, pending_findings, countermeasures) = (vec![], vec![], vec![]);
        let (count, uncovered, is_terminating) = (0, false, false);
        Self {
            rules,
            names,
            journal,
            roots,
            approved,
            hidden,
            autostart_files,
            pending_findings,
            reported,
            count,
            uncovered,
            countermeasures,
            is_terminating,
        }
    }

    /// Returns the roots that contain a path, with their baselines.
    pub(super) fn roots_containing(&self, path: &str) -> impl Iterator<Item = (&String, &Baseline)> {
        self.roots.iter().filter(move |(root, _)| is_in(path, root))
    }

    /// Returns `true` if anything at or below a path is closed or hidden.
    pub(super) fn has_mask_below(&self, path: &str) -> bool {
        let closed = self.roots.values().flat_map(Baseline::protected_paths);
        closed.chain(&self.hidden).any(|covered| is_at_or_below(covered, path))
    }

    /// Requests the countermeasure for `limit`, which the sandbox reached by recreating the file at `path`.
    pub(super) fn apply_limit(&mut self, path: &str, limit: MoveLimit) {
        match limit {
            MoveLimit::None => {}
            MoveLimit::Repeated => {
                let roots: Vec<String> = self.roots_containing(path).map(|(root, _)| root.clone()).collect();
                let due =
                    roots.into_iter().map(|root| Countermeasure::ReadOnly { root, path: path.to_owned() });
                for due in due {
                    let Countermeasure::ReadOnly { root, .. } = &due else { continue };
                    let reason = format!(
                        "`{path}` was recreated {MOVES_UNTIL_READ_ONLY} times, so `{root}` is now read-only for the server"
                    );
                    self.pending_findings.push(Finding::Unfinished { reason });
                    self.countermeasures.push(due);
                }
            }
            MoveLimit::Exceeded if self.is_terminating => {}
            MoveLimit::Exceeded => {
                self.is_terminating = true;
                let reason =
                    format!("it keeps creating files that your programs run automatically, such as `{path}`");
                self.pending_findings
                    .push(Finding::Unfinished { reason: format!("the server is stopped: {reason}") });
                self.countermeasures.push(Countermeasure::End { reason });
            }
        }
    }

    /// Records a file that was left in place and reports it once.
    pub(super) fn add_autostart_file(&mut self, path: &str, autostart_files: Finding) {
        if self.autostart_files.len() >= MAX_REPORTED && !self.autostart_files.contains_key(path) {
            // Counts the finding like any other finding beyond the limit.
            return self.report(autostart_files);
        }
        self.autostart_files.insert(path.to_owned(), autostart_files.clone());
        if self.is_first_report(path.to_owned()) {
            self.report(autostart_files);
        }
    }

    /// Marks `key` as reported. Returns `true` if it was not reported before.
    pub(super) fn is_first_report(&mut self, key: String) -> bool {
        self.reported.len() < 2 * MAX_REPORTED && self.reported.insert(key)
    }

    /// Queues a finding for the next read, unless [`MAX_REPORTED`] was reached.
    pub(super) fn report(&mut self, finding: Finding) {
        self.count += 1;
        if self.count < MAX_REPORTED {
            self.pending_findings.push(finding);
        } else if self.count == MAX_REPORTED {
            let reason =
                "too many findings to report; the remaining ones were handled in the same way".to_owned();
            self.pending_findings.push(Finding::Unfinished { reason });
        }
    }
}

/// Returns `true` if a path equals `root` or is below it.
pub(super) fn is_in(path: &str, root: &str) -> bool {
    root == "/" || is_at_or_below(path, root)
}
