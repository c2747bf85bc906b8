//! Signed heads. A signed head proves, on any machine, that the log had a certain entry at a certain position.
//!
//! - If a log contains the newest signed head, the entries up to that head are unchanged since it was signed.
//! - Entries removed by retention may be missing if the newest head covers the entry that records their removal.
//! - Heads prove nothing about entries after the newest head, or about entries written after the key was stolen.

use crate::key::{DeviceKey, PublicKey};
use ironcurtain_audit::{ChainPosition, LogCheck, check_all_written};
use ironcurtain_paths::bounded_read;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First line of a signed message. It separates these signatures from any other use of the key.
const PURPOSE: &str = "ironcurtain audit head v1";

/// Maximum interval between signed heads. The mean is 60 s.
pub const SIGN_EVERY: Duration = Duration::from_secs(80);

/// Size in bytes at which the heads file is renamed and a new one is started. One older file is kept.
const MAX_FILE_LEN: u64 = 4 * 1024 * 1024;

/// Position in the log, signed with a device key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    /// Number of entries.
    pub entries: u64,
    /// Hash of the last entry.
    pub head: String,
    /// Time of the signature, in milliseconds since the Unix epoch.
    pub time: u64,
    /// Public key that verifies the signature, in base64url.
    pub key: String,
    /// Signature over all other fields, in base64url.
    pub signature: String,
}

impl SignedHead {
    /// Signs a position.
    #[must_use]
    pub fn sign(key: &DeviceKey, positions: &ChainPosition, time: u64) -> Self {
        let mut head = Self {
            entries: positions.entries,
            head: positions.head.clone(),
            time,
            key: key.public().to_string(),
            signature: String::new(),
        };
        head.signature = key.sign(&head.message());
        head
    }

    /// Returns the head as a line of a heads file, without the line feed.
    #[must_use]
    pub fn line(&self) -> String {
        // Serializing numbers and strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn message(&self) -> Vec<u8> {
        let Self { entries, head, time, key, .. } = self;
        format!("{PURPOSE}\n{entries}\n{head}\n{time}\n{key}\n").into_bytes()
    }
}

/// File with signed heads, one per line.
#[derive(Debug)]
pub struct HeadsFile(PathBuf);

impl HeadsFile {
    /// Creates a handle for a file that need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Appends a head and syncs the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn append(&self, head: &SignedHead) -> io::Result<()> {
        let mut file = self.open()?;
        if file.metadata()?.len() >= MAX_FILE_LEN {
            std::fs::rename(&self.0, self.0.with_extension("old.jsonl"))?;
            file = self.open()?;
        }
        file.write_all(format!("{}\n", head.line()).as_bytes())?;
        file.sync_data()
    }

    /// Opens the file and removes an incomplete last line, which a killed process may have left.
    fn open(&self) -> io::Result<File> {
        let file = OpenOptions::new().append(true).read(true).create(true).mode(0o600).open(&self.0)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        if last != [b'\n'] {
            let text = std::fs::read(&self.0)?;
            let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(complete as u64)?;
        }
        Ok(file)
    }
}

/// Error returned when heads cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum HeadsError {
    /// A file cannot be read.
    #[error("failed to read `{path}`: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A line is not a signed head.
    #[error("`{path}`, line {line}: it is not a signed head")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
    },
    /// The file contains no head signed with this key.
    #[error("`{0}` contains no head that is signed with this key")]
    None(PathBuf),
}

/// Result of comparing a log with signed heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedHeads {
    /// Result of verifying the log.
    pub log: LogCheck,
    /// Number of valid heads that were found in the log.
    pub heads: usize,
    /// Number of valid heads whose entries were removed by retention.
    pub removed: usize,
    /// Valid head with the most entries.
    pub newest: SignedHead,
    /// First problem, or `None` if the log contains every head whose entry was not removed by retention.
    pub problem: Option<String>,
}

/// Verifies the heads in `file` with the key and checks that the log in `dir` contains all of them.
///
/// # Errors
/// Returns [`HeadsError`] if a file cannot be read, or if `file` contains no head that is signed with this key.
pub fn check_heads(dir: &Path, file: &Path, key: &PublicKey) -> Result<CheckedHeads, HeadsError> {
    let heads = read(file)?;
    let mut problem = None;
    let mut valid: Vec<&SignedHead> = Vec::new();
    for (line, head) in &heads {
        if head.key != key.to_string() {
            problem =
                problem.or_else(|| Some(format!("line {line} of the heads is signed with another key")));
        } else if !key.verifies(&head.message(), &head.signature) {
            problem = problem.or_else(|| Some(format!("line {line} of the heads has an invalid signature")));
        } else {
            valid.push(head);
        }
    }
    let newest = valid.iter().copied().max_by_key(|head| head.entries).cloned();
    let Some(newest) = newest else { return Err(HeadsError::None(file.to_path_buf())) };
    let read_error = |source| HeadsError::Read { path: dir.to_path_buf(), source };
    let position = |head: &&SignedHead| ChainPosition { entries: head.entries, head: head.head.clone() };
    let positions: Vec<ChainPosition> = valid.iter().map(position).collect();
    let log = check_all_written(dir, &positions).map_err(read_error)?;
    let removed = positions.iter().filter(|head| head.entries < log.removed).count();
    let uncovered_removal = log.removal.filter(|entry| *entry > newest.entries).map(|entry| {
        format!(
            "the entries up to {} are missing, and no signed head covers entry {entry}, which records that they were removed by age",
            log.removed
        )
    });
    let problem = log.problem.clone().or(problem).or(uncovered_removal);
    Ok(CheckedHeads { heads: log.found, removed, newest, problem, log })
}

/// Reads a file's heads with their line numbers. Skips an incomplete last line.
fn read(path: &Path) -> Result<Vec<(usize, SignedHead)>, HeadsError> {
    let read_error = |source| HeadsError::Read { path: path.to_path_buf(), source };
    let mut reader = BufReader::new(bounded_read::open(path).map_err(read_error)?);
    let (mut heads, mut text) = (Vec::new(), String::new());
    for line in 1.. {
        text.clear();
        if reader.read_line(&mut text).map_err(read_error)? == 0 {
            break;
        }
        match serde_json::from_str(&text) {
            Ok(head) => heads.push((line, head)),
            Err(_) if text.trim().is_empty() || !text.ends_with('\n') => {}
            Err(_) => return Err(HeadsError::Line { path: path.to_path_buf(), line }),
        }
    }
    Ok(heads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ironcurtain_audit::{Audit, Entry, Event, LOG_NAME, LogOptions};
    use std::time::{Duration, Instant};

    struct Fixture {
        dir: tempfile::TempDir,
        key: DeviceKey,
    }

    impl Fixture {
        /// Writes entries and signs the head after each entry.
        async fn new() -> Self {
            let fixture = Self { dir: tempfile::tempdir().unwrap(), key: DeviceKey::generate().unwrap() };
            let audit = Audit::open(&fixture.log(), |_| ()).unwrap();
            for number in 0..4 {
                audit.record(Entry::new(Event::Session, format!("entry {number}"))).await.unwrap();
                let head = SignedHead::sign(&fixture.key, &audit.status().0, number);
                HeadsFile::new(fixture.heads()).append(&head).unwrap();
            }
            audit.record(Entry::new(Event::Session, "not signed")).await.unwrap();
            fixture
        }

        fn log(&self) -> PathBuf {
            let dir = self.dir.path().join("audit");
            std::fs::create_dir_all(&dir).unwrap();
            dir
        }

        fn heads(&self) -> PathBuf {
            self.dir.path().join("heads.jsonl")
        }

        fn check(&self) -> CheckedHeads {
            check_heads(&self.log(), &self.heads(), &self.key.public()).unwrap()
        }

        fn edit_log(&self, edit: impl Fn(&str) -> String) {
            let file = self.log().join(LOG_NAME);
            std::fs::write(&file, edit(&std::fs::read_to_string(&file).unwrap())).unwrap();
        }
    }

    #[tokio::test]
    async fn log_with_all_heads_is_accepted_and_a_cut_one_is_not() {
        let fixture = Fixture::new().await;
        let checked = fixture.check();
        assert_eq!((checked.problem, checked.heads, checked.newest.entries), (None, 4, 4));
        assert_eq!(checked.log.entries, 5);
        let lines = |text: &str, count| text.split_inclusive('\n').take(count).collect::<String>();
        fixture.edit_log(|text| lines(text, 4));
        assert_eq!(fixture.check().problem, None, "the entry after the newest head is not covered");
        fixture.edit_log(|text| lines(text, 3));
        assert_eq!(fixture.check().problem.as_deref(), Some("it ends after 3 of 4 entries"));
    }

    #[tokio::test]
    async fn rewritten_log_is_refused() {
        let fixture = Fixture::new().await;
        std::fs::remove_file(fixture.log().join(LOG_NAME)).unwrap();
        let audit = Audit::open(&fixture.log(), |_| ()).unwrap();
        for _ in 0..9 {
            audit.record(Entry::new(Event::Session, "forged")).await.unwrap();
        }
        let checked = fixture.check();
        assert_eq!((checked.log.entries, checked.heads, checked.removed), (9, 0, 0));
        assert_eq!(checked.problem.as_deref(), Some("line 1: it does not match the recorded entry"));
    }

    #[tokio::test]
    async fn forged_heads_are_refused() {
        let fixture = Fixture::new().await;
        let text = std::fs::read_to_string(fixture.heads()).unwrap();
        std::fs::write(fixture.heads(), text.replacen("\"time\":2", "\"time\":9", 1)).unwrap();
        let found = fixture.check();
        assert_eq!(found.problem.as_deref(), Some("line 3 of the heads has an invalid signature"));
        let other = SignedHead::sign(
            &DeviceKey::generate().unwrap(),
            &ChainPosition { entries: 1, head: "x".into() },
            9,
        );
        std::fs::write(fixture.heads(), format!("{text}{}\n", other.line())).unwrap();
        assert_eq!(
            fixture.check().problem.as_deref(),
            Some("line 5 of the heads is signed with another key")
        );
        // A line that a killed process left incomplete is not a forgery.
        std::fs::write(fixture.heads(), format!("{text}{{\"entries\":5,")).unwrap();
        assert_eq!(fixture.check().problem, None);
        let last: SignedHead = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        HeadsFile::new(fixture.heads()).append(&last).unwrap();
        assert_eq!((fixture.check().problem, fixture.check().heads), (None, 5));
        std::fs::write(fixture.heads(), format!("{{}}\n{text}")).unwrap();
        let refused = check_heads(&fixture.log(), &fixture.heads(), &fixture.key.public());
        assert!(matches!(refused, Err(HeadsError::Line { line: 1, .. })), "{refused:?}");
    }

    /// Writes a valid log that claims that retention removed more entries than any head covers.
    fn forge_removal(log: &Path) {
        let begin = ChainPosition { entries: 1_000_000, head: "A".repeat(43) };
        let removed = format!("{{\"entries\":{},\"link\":\"{}\"}}", begin.entries, begin.head);
        let open = format!(
            "{{\"seq\":1000001,\"timestamp\":1,\"event\":\"retention\",\"summary\":\"x\",\"removed\":{removed},\"prev\":\"{}\"",
            begin.head
        );
        let digest = ring::digest::digest(&ring::digest::SHA256, format!("{}{open}", begin.head).as_bytes());
        let link = URL_SAFE_NO_PAD.encode(digest);
        std::fs::write(log.join(LOG_NAME), format!("{open},\"link\":\"{link}\"}}\n")).unwrap();
    }

    #[tokio::test]
    async fn forged_removal_does_not_excuse_missing_heads() {
        let fixture = Fixture::new().await;
        forge_removal(&fixture.log());
        assert_eq!(
            ironcurtain_audit::check(&fixture.log()).unwrap().problem,
            None,
            "the log alone looks intact"
        );
        let checked = fixture.check();
        assert_eq!((checked.heads, checked.removed), (0, 4));
        assert_eq!(
            checked.problem.as_deref(),
            Some("it begins after entry 1000000 and does not contain entry 4")
        );
    }

    #[tokio::test]
    async fn removal_by_age_must_be_covered_by_a_head() {
        let fixture = Fixture { dir: tempfile::tempdir().unwrap(), key: DeviceKey::generate().unwrap() };
        let options = LogOptions { file_bytes: 600, ..LogOptions::new(&fixture.log()) };
        let sign = |audit: &Audit| {
            let head = SignedHead::sign(&fixture.key, &audit.status().0, 1);
            HeadsFile::new(fixture.heads()).append(&head).unwrap();
        };
        let audit = Audit::open_with(options.clone(), |_| ()).unwrap();
        for number in 0..12 {
            audit.record(Entry::new(Event::Session, format!("entry {number}"))).await.unwrap();
            sign(&audit);
        }
        drop(audit);
        // With a retention time of zero, the log removes its closed files when it is opened.
        let audit = Audit::open_with(LogOptions { retention: Duration::ZERO, ..options }, |_| ()).unwrap();
        let bound = Instant::now() + Duration::from_secs(60);
        let count = || {
            std::fs::read_dir(fixture.log())
                .unwrap()
                .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("audit"))
                .count()
        };
        while count() > 1 {
            assert!(Instant::now() < bound, "timed out");
            tokio::task::yield_now().await;
        }
        let problem = fixture.check().problem.unwrap();
        assert!(problem.contains("no signed head covers entry"), "{problem}");
        sign(&audit);
        let checked = fixture.check();
        assert_eq!((checked.problem, checked.heads + checked.removed), (None, 13));
        assert!(checked.heads > 0 && checked.removed > 0 && checked.log.removed > 0);
    }

    #[tokio::test]
    async fn head_with_the_most_entries_counts_wherever_it_is() {
        let fixture = Fixture::new().await;
        let text = std::fs::read_to_string(fixture.heads()).unwrap();
        let first = text.lines().next().unwrap().to_owned();
        std::fs::write(fixture.heads(), format!("{text}{first}\n")).unwrap();
        let checked = fixture.check();
        assert_eq!((checked.problem, checked.heads, checked.newest.entries), (None, 5, 4));
        fixture.edit_log(|text| text.split_inclusive('\n').take(1).collect());
        assert_eq!(fixture.check().problem.as_deref(), Some("it ends after 1 of 2 entries"));
    }
}
