//! Crash journal of a sandbox's writable roots. Another process completes the checks if this process is killed.
//!
//! - Each sandbox has an append-only file of JSON lines, locked by the process that watches the sandbox.
//! - INVARIANT: a root is journaled before it becomes writable, and a move to quarantine is journaled before it
//!   happens.

mod owner;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
};

use owner::{Owner, lock};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{AutostartRules, Finding, baseline::Baseline, file_stamp::FileStamp};
use crate::state::{StateDir, create_numbered};

/// Sequence number of the next journal file.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Journal file of one sandbox, locked by this process.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// Journal entry, one JSON line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum JournalLine<'a> {
    Begin {
        pid: u32,
        name: Cow<'a, str>,
        rules: Cow<'a, AutostartRules>,
    },
    /// Process that owns the journal from this line on.
    Owner(Owner),
    Open {
        root: Cow<'a, str>,
        baseline: Cow<'a, Baseline>,
    },
    Close {
        root: Cow<'a, str>,
    },
    #[serde(rename = "named")]
    Approved {
        path: Cow<'a, str>,
    },
    /// A program outside the sandbox has replaced a covered file.
    Replaced {
        path: Cow<'a, str>,
        stamp: FileStamp,
    },
    /// A draft with this name is about to be written next to `path`.
    Drafted {
        path: Cow<'a, str>,
        draft: Cow<'a, str>,
    },
    /// A finding that was reported or is about to be reported.
    Found {
        finding: Cow<'a, Finding>,
    },
    /// A finding to report unless `draft` still exists. An existing draft means that the keys were not restored.
    Restored {
        finding: Cow<'a, Finding>,
        draft: Cow<'a, str>,
    },
}

/// Journal that a killed process left behind.
#[derive(Debug)]
pub(super) struct UnfinishedJournal {
    pub(super) journal: Journal,
    pub(super) name: String,
    pub(super) rules: AutostartRules,
    pub(super) roots: BTreeMap<String, Baseline>,
    pub(super) approved: Vec<String>,
    pub(super) findings: Vec<Finding>,
    /// Paths of files, each with the name of a draft that may still exist next to the file.
    pub(super) drafts: Vec<(String, String)>,
    /// Findings to report, each with the path of its draft. A finding is skipped if its draft still exists.
    pub(super) restored: Vec<(Finding, String)>,
}

impl Journal {
    /// Creates and locks a journal in `dir`.
    pub(super) fn create(dir: &Path, name: &str, rules: &AutostartRules) -> io::Result<Self> {
        let stem: String =
            name.chars().take(64).map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let (file, path) = create_numbered(&NEXT_NUMBER, |number| {
            let path = dir.join(format!("{stem}~{number}.json"));
            Ok((File::options().create_new(true).append(true).open(&path)?, path))
        })?;
        flock(&file, FlockOperation::LockExclusive)?;
        let journal = Self { file, path };
        let (pid, name) = (std::process::id(), name.into());
        journal.write(&JournalLine::Begin { pid, name, rules: Cow::Borrowed(rules) })?;
        journal.write_owner()?;
        Ok(journal)
    }

    /// Takes over the journals of processes that have exited.
    pub(super) fn adopt_unfinished(state: &StateDir) -> io::Result<Vec<UnfinishedJournal>> {
        let mut unfinished = Vec::new();
        for entry in fs::read_dir(state.subdir("autostart")?)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            if let Some(one) = Self::adopt(path)? {
                unfinished.push(one);
            }
        }
        Ok(unfinished)
    }

    /// Takes over a journal. Returns `None` if its owner is still running.
    fn adopt(path: PathBuf) -> io::Result<Option<UnfinishedJournal>> {
        let Ok(file) = File::options().read(true).append(true).open(&path) else { return Ok(None) };
        if !lock(&file, &path) {
            return Ok(None);
        }
        let text = fs::read_to_string(&path);
        let journal = Self { file, path };
        // Another process has completed the work and removed the file.
        let Ok(text) = text else { return Ok(None) };
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let begin = lines.next().and_then(|line| serde_json::from_str(line).ok());
        let Some(JournalLine::Begin { name, rules, .. }) = begin else {
            // No root has become writable yet. A recent journal is kept, because its owner may not have locked it yet.
            if journal.is_old() {
                journal.remove();
            }
            return Ok(None);
        };
        // Ignores the error: if the disk is full, other processes wait for the lock until they time out.
        let _ = journal.take_ownership(&text);
        let (name, rules) = (name.into_owned(), rules.into_owned());
        let mut unfinished = UnfinishedJournal {
            journal,
            name,
            rules,
            roots: BTreeMap::new(),
            approved: vec![],
            findings: vec![],
            drafts: vec![],
            restored: vec![],
        };
        for line in lines {
            match serde_json::from_str(line).map_err(io::Error::other) {
                Ok(line) => unfinished.add(line),
                Err(error) => unfinished.findings.push(Finding::Unfinished {
                    reason: format!(
                        "failed to parse a line of `{}`: {error}",
                        unfinished.journal.path.display()
                    ),
                }),
            }
        }
        Ok(Some(unfinished))
    }

    /// Makes this process the owner of a journal that contains `text`. An incomplete last line, left by a killed
    /// process, is removed first.
    fn take_ownership(&self, text: &str) -> io::Result<()> {
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        if complete < text.len() {
            self.file.set_len(u64::try_from(complete).map_err(io::Error::other)?)?;
        }
        self.write_owner()
    }

    /// Appends a line that makes this process the owner.
    fn write_owner(&self) -> io::Result<()> {
        let pid = std::process::id();
        match Owner::find(pid) {
            Some(owner) => self.write(&JournalLine::Owner(owner)),
            None => Ok(()),
        }
    }

    fn is_old(&self) -> bool {
        let age = self.file.metadata().and_then(|metadata| metadata.modified()).map(|made| made.elapsed());
        age.is_ok_and(|age| age.is_ok_and(|age| age.as_secs() > 60))
    }

    pub(super) fn log_open(&self, root: &str, baseline: &Baseline) -> io::Result<()> {
        self.write(&JournalLine::Open { root: root.into(), baseline: Cow::Borrowed(baseline) })
    }

    pub(super) fn log_close(&self, root: &str) -> io::Result<()> {
        self.write(&JournalLine::Close { root: root.into() })
    }

    pub(super) fn log_approved(&self, path: &str) -> io::Result<()> {
        self.write(&JournalLine::Approved { path: path.into() })
    }

    pub(super) fn log_replaced(&self, path: &str, stamp: FileStamp) -> io::Result<()> {
        self.write(&JournalLine::Replaced { path: path.into(), stamp })
    }

    pub(super) fn log_draft(&self, path: &str, draft: &str) -> io::Result<()> {
        self.write(&JournalLine::Drafted { path: path.into(), draft: draft.into() })
    }

    pub(super) fn log_restored(&self, finding: &Finding, draft: &str) -> io::Result<()> {
        self.write(&JournalLine::Restored { finding: Cow::Borrowed(finding), draft: draft.into() })
    }

    pub(super) fn log_finding(&self, finding: &Finding) -> io::Result<()> {
        self.write(&JournalLine::Found { finding: Cow::Borrowed(finding) })
    }

    /// Returns the path of this process's temporary file. The path is unique per process, because a git process started
    /// by a killed process may still be using the killed process's file.
    pub(super) fn scratch_path(&self) -> PathBuf {
        self.path.with_extension(format!("{}.scratch", std::process::id()))
    }

    /// Deletes the journal and its temporary files.
    pub(super) fn remove(self) {
        let scratch = self.path.with_extension("");
        let is_scratch = |path: &Path| {
            let [path, ours] = [path, &scratch].map(|path| path.as_os_str().as_encoded_bytes());
            path.strip_prefix(ours).is_some_and(|rest| rest.starts_with(b".") && rest != b".json")
        };
        for entry in self.path.parent().into_iter().flat_map(fs::read_dir).flatten().flatten() {
            if is_scratch(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        // Ignores the error: the next process repeats the checks without finding anything.
        let _ = fs::remove_file(&self.path);
    }

    fn write(&self, line: &JournalLine<'_>) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        (&self.file).write_all(&text)
    }
}

impl UnfinishedJournal {
    fn add(&mut self, line: JournalLine<'_>) {
        match line {
            JournalLine::Begin { .. } | JournalLine::Owner(_) => {}
            JournalLine::Open { root, baseline } => {
                let mut baseline = baseline.into_owned();
                baseline.rebuild_indexes();
                self.roots.insert(root.into_owned(), baseline);
            }
            JournalLine::Close { root } => _ = self.roots.remove(root.as_ref()),
            JournalLine::Approved { path } => self.approved.push(path.into_owned()),
            JournalLine::Replaced { path, stamp } => {
                self.roots.values_mut().for_each(|baseline| baseline.replace(&path, stamp));
            }
            JournalLine::Drafted { path, draft } => self.drafts.push((path.into_owned(), draft.into_owned())),
            JournalLine::Found { finding } => self.findings.push(finding.into_owned()),
            JournalLine::Restored { finding, draft } => {
                self.restored.push((finding.into_owned(), draft.into_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
