//! Session record: facts about a session and the autostart files that it left behind. The record outlives the trusted
//! process.
//!
//! - INVARIANT: a decision about a file applies until a server leaves the file with different content.
//! - The number of listed files is limited. Further files are only counted.

use ironcurtain_audit::FileDecision;
use ironcurtain_paths::{atomic_file, bounded_read};
use ironcurtain_sandbox::autostart::{Finding, real_path};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// File name of the record in the session's directory.
const FILE_NAME: &str = "record.json";

/// Maximum number of files listed per session.
const MAX_FILES: usize = 500;

/// Maximum number of stored reasons for an incomplete check.
const MAX_REASONS: usize = 50;

/// Facts about a session that are known when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFacts {
    /// Name of the client, verified through the kernel.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// `true` if the server runs in a sandbox.
    pub sandboxed: bool,
    /// `true` if the server is reached over HTTP.
    #[serde(default)]
    pub remote: bool,
    /// Start of the session, in milliseconds since the Unix epoch.
    pub started_ms: u64,
}

/// Record of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRecord {
    /// Facts known when the session starts.
    #[serde(flatten)]
    pub(crate) facts: SessionFacts,
    /// End of the session, in milliseconds since the Unix epoch, or `None` while the session is open or if the trusted
    /// process was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_ms: Option<u64>,
    /// Autostart files that the session left behind.
    #[serde(default)]
    pub(crate) files: Vec<RecordedFile>,
    /// Number of files that are not listed, because there are more than [`MAX_FILES`].
    #[serde(default)]
    pub(crate) more: usize,
    /// Reasons the check is incomplete.
    #[serde(default)]
    pub(crate) unfinished: Vec<String>,
}

/// Number of a session's files, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileCounts {
    /// Number of undecided files.
    pub(crate) undecided: usize,
    /// Number of quarantined files.
    pub(crate) in_quarantine: usize,
}

/// Autostart file that a session left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedFile {
    /// The watcher's finding.
    pub(crate) finding: Finding,
    /// The user's decision, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<FileDecision>,
    /// Time of the finding, in milliseconds since the Unix epoch.
    pub(crate) time_ms: u64,
}

impl RecordedFile {
    /// Returns the original path of the file.
    pub(crate) fn path(&self) -> Option<&str> {
        path(&self.finding)
    }

    /// Returns the path in quarantine of this file or, after an exchange, of the file that had taken its place. Returns
    /// `None` if there is no such file.
    pub(crate) fn quarantine_path(&self) -> Option<&str> {
        let kept = match (&self.decided, &self.finding) {
            (Some(FileDecision::Quarantined { moved_to } | FileDecision::Exchanged { moved_to }), _)
            | (None, Finding::Quarantined { moved_to, .. }) => moved_to,
            (_, _) => return None,
        };
        real_path(kept).symlink_metadata().is_ok().then_some(kept.as_str())
    }

    /// Returns `true` if something exists at the original path.
    pub(crate) fn is_occupied(&self) -> bool {
        self.path().is_some_and(|path| real_path(path).symlink_metadata().is_ok())
    }

    /// Returns `true` if the file exists and the user has not decided about it.
    pub(crate) fn is_undecided(&self) -> bool {
        match &self.finding {
            Finding::AutostartFile { path, .. } => {
                self.decided.is_none() && real_path(path).symlink_metadata().is_ok()
            }
            Finding::Quarantined { .. } | Finding::Restored { .. } | Finding::Unfinished { .. } => false,
        }
    }
}

impl RecordedFile {
    /// Returns `true` if `finding` repeats this file's finding. A removed file that reappears is a new finding.
    fn repeats(&self, finding: &Finding) -> bool {
        let was_removed = matches!(&self.finding, Finding::AutostartFile { .. })
            && matches!(
                &self.decided,
                Some(
                    FileDecision::Quarantined { .. } | FileDecision::Exchanged { .. } | FileDecision::Deleted
                )
            );
        !was_removed && is_same_finding(&self.finding, finding)
    }
}

impl SessionRecord {
    /// Creates a session's record, or reopens it if the session continues.
    pub(crate) fn create_or_reopen(dir: &Path, facts: SessionFacts) -> io::Result<Self> {
        Ok(match Self::read(dir)? {
            Some(earlier) => Self { facts, ended_ms: None, ..earlier },
            None => Self::new(facts),
        })
    }

    pub(crate) fn new(facts: SessionFacts) -> Self {
        Self { facts, ended_ms: None, files: Vec::new(), more: 0, unfinished: Vec::new() }
    }

    /// Reads a session's record. Returns `None` if the session has no record.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read or parsed.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let text = bounded_read::read_text(&record_path(dir))?;
        text.map(|text| Ok(serde_json::from_str(&text)?)).transpose()
    }

    /// Writes the record atomically.
    ///
    /// # Errors
    /// Returns an error if writing fails. The old record is then kept.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        atomic_file::replace(&record_path(dir), &serde_json::to_string(self)?)
    }

    /// Adds a finding. Returns `true` if it is new.
    pub(crate) fn add(&mut self, finding: Finding, time_ms: u64) -> bool {
        if let Finding::Unfinished { reason } = finding {
            let is_new = !self.unfinished.contains(&reason) && self.unfinished.len() < MAX_REASONS;
            self.unfinished.extend(is_new.then_some(reason));
            return is_new;
        }
        let has_same_path = |file: &&RecordedFile| file.path() == path(&finding);
        if self.files.iter().filter(has_same_path).any(|file| file.repeats(&finding)) {
            return false;
        }
        // A quarantined file stays listed if another file appears at its path.
        match self.files.iter().position(|file| has_same_path(&file) && file.quarantine_path().is_none()) {
            Some(at) => drop(self.files.remove(at)),
            None if self.files.len() >= MAX_FILES => {
                self.more += 1;
                return true;
            }
            None => {}
        }
        self.files.push(RecordedFile { finding, decided: None, time_ms });
        true
    }

    /// Returns the undecided file with this path.
    pub(crate) fn undecided(&mut self, path: &str) -> Option<&mut RecordedFile> {
        self.files.iter_mut().find(|file| file.path() == Some(path) && file.is_undecided())
    }

    /// Returns the newest quarantined file from this path.
    pub(crate) fn in_quarantine(&mut self, path: &str) -> Option<&mut RecordedFile> {
        self.files.iter_mut().rfind(|file| file.path() == Some(path) && file.quarantine_path().is_some())
    }

    /// Counts the undecided and the quarantined files.
    pub(crate) fn count(&self) -> FileCounts {
        let number = |is: fn(&RecordedFile) -> bool| self.files.iter().filter(|file| is(file)).count();
        FileCounts {
            undecided: number(RecordedFile::is_undecided),
            in_quarantine: number(|file| file.quarantine_path().is_some()),
        }
    }
}

fn record_path(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

fn path(finding: &Finding) -> Option<&str> {
    match finding {
        Finding::Quarantined { path, .. }
        | Finding::Restored { path, .. }
        | Finding::AutostartFile { path, .. } => Some(path),
        Finding::Unfinished { .. } => None,
    }
}

/// Returns `true` if two findings describe the same state of a file. If the file changed in between, their diffs
/// differ.
fn is_same_finding(before: &Finding, now: &Finding) -> bool {
    match (before, now) {
        (Finding::AutostartFile { diff: before, .. }, Finding::AutostartFile { diff: now, .. }) => {
            before == now
        }
        (before, now) => before == now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_sandbox::autostart::ChangeKind;

    fn record() -> SessionRecord {
        SessionRecord::new(SessionFacts {
            client: "claude".into(),
            server: "git".into(),
            sandboxed: true,
            remote: false,
            started_ms: 1,
        })
    }

    fn finding(path: &Path, diff: &str) -> Finding {
        let path = path.to_str().unwrap().to_owned();
        Finding::AutostartFile {
            path,
            when: "when you commit".into(),
            change: ChangeKind::New,
            diff: Some(diff.into()),
        }
    }

    #[test]
    fn a_record_round_trips_and_a_damaged_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(SessionRecord::read(dir.path()).unwrap(), None);
        let mut all = record();
        assert!(all.add(finding(&dir.path().join("a"), "+a"), 2));
        assert!(
            all.add(Finding::Restored { path: "/p/.git/config".into(), keys: vec!["core.pager".into()] }, 3)
        );
        assert!(all.add(Finding::Unfinished { reason: "too deep".into() }, 4));
        assert!(!all.add(Finding::Unfinished { reason: "too deep".into() }, 5));
        all.ended_ms = Some(6);
        all.write(dir.path()).unwrap();
        assert_eq!(SessionRecord::read(dir.path()).unwrap(), Some(all));
        std::fs::write(dir.path().join(FILE_NAME), "{").unwrap();
        assert!(SessionRecord::read(dir.path()).is_err());
    }

    #[test]
    fn a_decision_holds_until_the_file_is_left_with_other_content() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("Makefile");
        std::fs::write(&file, "all:\n").unwrap();
        let mut all = record();
        assert!(all.add(finding(&file, "+all:"), 1));
        assert_eq!(all.count().undecided, 1);
        all.undecided(file.to_str().unwrap()).unwrap().decided = Some(FileDecision::Kept);
        assert!(!all.add(finding(&file, "+all:"), 2));
        assert_eq!(all.count().undecided, 0);
        assert!(all.add(finding(&file, "+all: evil"), 3));
        assert_eq!((all.count().undecided, all.files.len()), (1, 1));
        // A removed file requires no decision.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(all.count(), FileCounts::default());
    }

    #[test]
    fn a_quarantined_file_stays_listed_until_it_is_restored_or_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let (path, kept) = (dir.path().join("Makefile"), [dir.path().join("0"), dir.path().join("1")]);
        kept.iter().for_each(|kept| std::fs::write(kept, "all:").unwrap());
        let moved = |kept: &Path| Finding::Quarantined {
            path: path.display().to_string(),
            moved_to: kept.display().to_string(),
            when: "later".into(),
        };
        let mut all = record();
        let [first, second] = &kept;
        assert!(all.add(moved(first), 1) && all.add(moved(second), 2) && !all.add(moved(first), 3));
        assert_eq!(all.count(), FileCounts { undecided: 0, in_quarantine: 2 });
        let name = path.to_str().unwrap();
        let newest = all.in_quarantine(name).unwrap();
        assert_eq!(newest.quarantine_path(), second.to_str());
        newest.decided = Some(FileDecision::Returned);
        assert_eq!(all.in_quarantine(name).unwrap().quarantine_path(), first.to_str());
        std::fs::remove_file(first).unwrap();
        assert!(all.in_quarantine(name).is_none());
        assert_eq!(all.count(), FileCounts::default());
        // A file that reappears is reported even if its content is the same.
        std::fs::write(&path, "all:").unwrap();
        assert!(all.add(finding(&path, "+all:"), 4));
        let moved_to = second.display().to_string();
        all.undecided(name).unwrap().decided = Some(FileDecision::Quarantined { moved_to });
        assert!(all.add(finding(&path, "+all:"), 5));
        assert_eq!(all.count(), FileCounts { undecided: 1, in_quarantine: 1 });
    }

    #[test]
    fn files_over_the_limit_are_counted() {
        let mut all = record();
        for n in 0..MAX_FILES + 3 {
            assert!(all.add(finding(Path::new(&format!("/p/{n}/Makefile")), "+x"), 1));
        }
        assert_eq!((all.files.len(), all.more), (MAX_FILES, 3));
    }
}
