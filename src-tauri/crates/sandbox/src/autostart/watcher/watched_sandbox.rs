//! State of one watched sandbox.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    autostart::{
        AutostartRules, Countermeasure, Finding,
        baseline::Baseline,
        budget::{MAX_MOVES, MoveLimit},
        journal::Journal,
        name_table::NameTable,
    },
    place::is_at_or_below,
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
    pub(super) named: BTreeSet<String>,
    pub(super) hidden: Vec<String>,
    /// Findings about autostart files that were left in place, by path.
    pub(super) left: BTreeMap<String, Finding>,
    /// Findings to return from the next read.
    pub(super) waiting: Vec<Finding>,
    /// Already reported paths, some combined with a configuration key.
    pub(super) reported: BTreeSet<String>,
    pub(super) count: usize,
    pub(super) uncovered: bool,
    /// Countermeasures for the launcher to take.
    pub(super) countermeasures: Vec<Countermeasure>,
    /// `true` once the launcher was asked to terminate the sandbox.
    is_over: bool,
}

impl WatchedSandbox {
    pub(super) fn new(rules: AutostartRules, journal: Journal) -> Self {
        let names = NameTable::new(&rules);
        let (roots, left) = (BTreeMap::new(), BTreeMap::new());
        let (named, reported) = (BTreeSet::new(), BTreeSet::new());
        let (hidden, waiting, countermeasures) = (vec![], vec![], vec![]);
        let (count, uncovered, is_over) = (0, false, false);
        Self {
            rules,
            names,
            journal,
            roots,
            named,
            hidden,
            left,
            waiting,
            reported,
            count,
            uncovered,
            countermeasures,
            is_over,
        }
    }

    /// Returns the roots that contain a path, with their baselines.
    pub(super) fn around(&self, path: &str) -> impl Iterator<Item = (&String, &Baseline)> {
        self.roots.iter().filter(move |(root, _)| is_in(path, root))
    }

    /// Returns `true` if anything at or below a path is closed or hidden.
    pub(super) fn has_cover_below(&self, path: &str) -> bool {
        let closed = self.roots.values().flat_map(Baseline::closed);
        closed.chain(&self.hidden).any(|covered| is_at_or_below(covered, path))
    }

    /// Requests the countermeasure for `limit`, which the sandbox reached by recreating the file at `path`.
    pub(super) fn limit(&mut self, path: &str, limit: MoveLimit) {
        match limit {
            MoveLimit::None => {}
            MoveLimit::Again => {
                let roots: Vec<String> = self.around(path).map(|(root, _)| root.clone()).collect();
                let due =
                    roots.into_iter().map(|root| Countermeasure::ReadOnly { root, path: path.to_owned() });
                for due in due {
                    let Countermeasure::ReadOnly { root, .. } = &due else { continue };
                    let reason = format!(
                        "`{path}` was recreated {MAX_MOVES} times, so `{root}` is now read-only for the server"
                    );
                    self.waiting.push(Finding::Unfinished { reason });
                    self.countermeasures.push(due);
                }
            }
            MoveLimit::Over if self.is_over => {}
            MoveLimit::Over => {
                self.is_over = true;
                let reason =
                    format!("it keeps creating files that your programs run automatically, such as `{path}`");
                self.waiting.push(Finding::Unfinished { reason: format!("the server is stopped: {reason}") });
                self.countermeasures.push(Countermeasure::End { reason });
            }
        }
    }

    /// Records a file that was left in place, and reports it once.
    pub(super) fn list(&mut self, path: &str, left: Finding) {
        if self.left.len() >= MAX_REPORTED && !self.left.contains_key(path) {
            // Counts the finding like any other finding beyond the limit.
            return self.report(left);
        }
        self.left.insert(path.to_owned(), left.clone());
        if self.is_news(path.to_owned()) {
            self.report(left);
        }
    }

    /// Marks `what` as reported. Returns `true` if it was not reported before.
    pub(super) fn is_news(&mut self, what: String) -> bool {
        self.reported.len() < 2 * MAX_REPORTED && self.reported.insert(what)
    }

    /// Queues a finding for the next read, unless [`MAX_REPORTED`] was reached.
    pub(super) fn report(&mut self, finding: Finding) {
        self.count += 1;
        if self.count < MAX_REPORTED {
            self.waiting.push(finding);
        } else if self.count == MAX_REPORTED {
            let reason =
                "too many findings to report; the remaining ones were handled in the same way".to_owned();
            self.waiting.push(Finding::Unfinished { reason });
        }
    }
}

/// Returns `true` if a path equals `root` or is below it.
pub(super) fn is_in(path: &str, root: &str) -> bool {
    root == "/" || is_at_or_below(path, root)
}
