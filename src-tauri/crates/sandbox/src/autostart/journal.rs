//! Crash journal of a sandbox's writable roots. Another process completes the checks if this process is killed.
//!
//! - Each sandbox has an append-only file of JSON lines, locked by the process that watches the sandbox.
//! - INVARIANT: a root is journaled before it becomes writable, and a move to quarantine is journaled before it
//!   happens.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

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

/// Process that owns a journal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    /// Start time in clock ticks since boot. Distinguishes the process from a later process with the same id.
    started: u64,
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

impl Owner {
    /// Looks up a running process by id. Zombies are ignored, because they have already closed their files.
    fn find(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain spaces. Fields after it are numbered from 3 in `proc_pid_stat(5)`.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started })
    }

    /// Returns `true` if the last recorded owner of a journal is running.
    fn is_running(path: &Path) -> bool {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut is_running = None;
        for line in lines {
            match line {
                // Earlier versions journaled only the process id.
                JournalLine::Begin { pid, .. } => is_running = Some(Self::find(pid).is_some()),
                JournalLine::Owner(owner) => is_running = Some(Self::find(owner.pid) == Some(owner)),
                JournalLine::Open { .. }
                | JournalLine::Close { .. }
                | JournalLine::Approved { .. }
                | JournalLine::Replaced { .. }
                | JournalLine::Drafted { .. }
                | JournalLine::Found { .. }
                | JournalLine::Restored { .. } => {}
            }
        }
        is_running.unwrap_or(true)
    }
}

/// Locks a journal. Returns `false` if a running process owns it.
///
/// A child of a killed owner can hold the lock until the child calls `exec`. After the owner has exited, this function
/// therefore waits for the lock.
fn lock(file: &File, path: &Path) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Owner::is_running(path) || Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
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
mod tests {
    use super::*;

    /// Writes a journal owned by `owner` and spawns a child that keeps holding the lock after this process closes the
    /// file.
    fn held_by_child(dir: &Path, owner: Owner) -> (PathBuf, std::process::Child) {
        let Journal { file, path } = Journal::create(dir, "s", &AutostartRules::default()).unwrap();
        let journal = Journal { file, path: path.clone() };
        journal.write(&JournalLine::Owner(owner)).unwrap();
        let mut child = std::process::Command::new("cat");
        let inherited = journal.file.try_clone().unwrap();
        let child = child.stdin(std::process::Stdio::piped()).stdout(inherited).spawn().unwrap();
        (path, child)
    }

    #[test]
    fn waits_for_a_lock_held_by_a_child_of_an_exited_owner() {
        let dir = tempfile::tempdir().unwrap();
        let own = Owner::find(std::process::id()).unwrap();
        let reused = Owner { started: own.started + 1, ..own };
        let (path, mut child) = held_by_child(dir.path(), reused);
        let taker = std::thread::spawn(move || Journal::adopt(path).unwrap());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(taker.join().unwrap().is_some());
    }

    #[test]
    fn journal_of_a_running_owner_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut child) = held_by_child(dir.path(), Owner::find(std::process::id()).unwrap());
        assert!(Journal::adopt(path).unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn journal_without_a_begin_line_is_left_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s~1.json");
        fs::write(&path, "{\"line\":\"beg").unwrap();
        assert!(Journal::adopt(path.clone()).unwrap().is_none());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"line\":\"beg");
    }

    #[test]
    fn incomplete_last_line_is_removed_and_the_rest_is_taken_again() {
        let dir = tempfile::tempdir().unwrap();
        let begun = Journal::create(dir.path(), "s", &AutostartRules::default()).unwrap();
        begun.log_approved("/home/u/a").unwrap();
        (&begun.file).write_all(b"{\"line\":\"named\",\"pa").unwrap();
        let path = begun.path.clone();
        release(begun);
        for _ in 0..2 {
            let unfinished = Journal::adopt(path.clone()).unwrap().unwrap();
            assert_eq!(
                (unfinished.name.as_str(), unfinished.approved.as_slice()),
                ("s", &["/home/u/a".to_owned()][..])
            );
            assert_eq!(unfinished.findings, []);
            release(unfinished.journal);
        }
    }

    /// Unlocks the journal before closing it, because a child forked by a concurrent test shares the lock until it
    /// calls `exec`.
    fn release(journal: Journal) {
        flock(&journal.file, FlockOperation::Unlock).unwrap();
    }

    #[test]
    fn zombie_is_not_an_owner() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // Waits for the child to exit without reaping it.
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let id = rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child));
        rustix::process::waitid(id, options).unwrap();
        assert_eq!(Owner::find(child.id()), None);
        child.wait().unwrap();
    }

    #[test]
    fn numbers_are_never_reused_and_existing_ones_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let begun = || Journal::create(dir.path(), "s", &AutostartRules::default()).unwrap();
        let first = begun().path;
        fs::remove_file(&first).unwrap();
        let second = begun().path;
        assert_ne!(second, first);
        let number = |path: &Path| -> u64 {
            path.to_str().unwrap().rsplit_once('~').unwrap().1.strip_suffix(".json").unwrap().parse().unwrap()
        };
        for taken in number(&second) + 1..number(&second) + 50 {
            fs::write(dir.path().join(format!("s~{taken}.json")), "").unwrap();
        }
        assert!(number(&begun().path) >= number(&second) + 50);
    }
}
