//! Computes the line diff between a file on disk and the content that a call would write.
//!
//! - A diff is computed only if the call names one file and fully determines its new content or edits. An unknown
//!   argument (such as `append`) or an unexpected tool name could change the result, so such calls are not compared.
//! - INVARIANT: symlinks are not followed, even if one replaces the path after it was judged.
//! - File size and time are limited. If the comparison fails, the question shows the reason.

use crate::found_paths::FoundPaths;
use ironcurtain_paths::{CanonicalPath, PathKind, bounded_read};
use ironcurtain_policy::{ResolvedCall, Resource, Role, Verb};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// Maximum size of a file to compare: 1 MiB.
const MAX_LEN: u64 = 1024 * 1024;
/// Maximum size of a diff: 256 KiB, which is also the maximum text of a question.
const MAX_CHANGE_LEN: usize = 256 * 1024;
/// Time limit for reading and comparing a file.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Time limit for the diff algorithm. A diff that reaches it is correct but not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);
/// Number of unchanged lines shown before and after each change.
const CONTEXT: usize = 3;

/// A file and the change that a call would make to it.
#[derive(Debug)]
pub struct FileComparison {
    path: CanonicalPath,
    state_before: String,
    pub(super) outcome: ComparisonResult,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ComparisonResult {
    /// Diff of the file, with line counts.
    Diff {
        /// Changed lines, each preceded by `+` or `-`, and lines of context.
        text: String,
        /// Number of added lines.
        added: usize,
        /// Number of removed lines.
        removed: usize,
        /// Number of lines in the current file.
        before: usize,
        /// Reason the server's result may differ from this diff, if there is one.
        caveat: Option<&'static str>,
    },
    /// No diff was computed. Contains the reason to show to the user.
    Failed(&'static str),
}

/// Change described by the call's arguments.
enum Change {
    Content(String),
    /// Pairs of old and new text.
    Edits(Vec<(String, String)>),
}

impl FileComparison {
    /// Compares the file with the content that the call would write. Returns `None` if the call does not fully
    /// determine the content.
    pub async fn of(call: &ResolvedCall, found: &FoundPaths) -> Option<Self> {
        let (path, change) = only_change(call, found)?;
        let state_before = file_state(&path);
        let at = path.clone();
        let comparing = tokio::task::spawn_blocking(move || compare(&at, &change));
        let outcome = match tokio::time::timeout(TIMEOUT, comparing).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => ComparisonResult::Failed("reading it takes too long"),
        };
        Some(Self { path, state_before, outcome })
    }

    /// Returns `true` if the file on disk is unchanged since the comparison.
    #[must_use]
    pub fn is_current(&self) -> bool {
        file_state(&self.path) == self.state_before
    }
}

/// Returns a string that identifies the file or folder at a path. For a file, the string also changes when the content
/// or metadata changes.
#[must_use]
pub fn file_state(path: &CanonicalPath) -> String {
    match path.as_path().symlink_metadata() {
        Ok(is) if is.is_dir() => format!("{} {} folder", is.dev(), is.ino()),
        Ok(is) => {
            let changed = (is.mtime(), is.mtime_nsec(), is.ctime(), is.ctime_nsec());
            format!("{} {} {} {} {changed:?}", is.dev(), is.ino(), is.mode(), is.size())
        }
        Err(problem) => problem.kind().to_string(),
    }
}

/// Returns the only file that the call writes, and the change to it. Returns `None` if another argument could affect
/// the change.
fn only_change(call: &ResolvedCall, found: &FoundPaths) -> Option<(CanonicalPath, Change)> {
    let [given] = call.given() else { return None };
    let Resource::Path(path) = &given.value else { return None };
    let argument = call.argument(given);
    let is_file = matches!(found.find(argument, path)?.target, PathKind::File { .. });
    if call.is_unannotated() || !given.roles.contains(Role::WritePath) || !is_file {
        return None;
    }
    let mut change = None;
    for (name, value) in call.transport_arguments() {
        match (name.as_str(), value) {
            (name, _) if *name == **argument => {}
            ("dryRun", Value::Bool(false)) | (_, Value::Null) => {}
            ("content", Value::String(text)) if change.is_none() => {
                let puts = matches!(
                    Verb::from_tool_name(call.tool()),
                    Some(Verb::Create | Verb::Write | Verb::Overwrite)
                );
                change = Some(Change::Content(puts.then(|| text.clone())?));
            }
            ("edits", Value::Array(edits)) if change.is_none() => {
                let text = |edit: &Value, name: &str| edit.get(name)?.as_str().map(str::to_owned);
                let pairs = edits.iter().map(|edit| Some((text(edit, "oldText")?, text(edit, "newText")?)));
                change = Some(Change::Edits(pairs.collect::<Option<_>>()?));
            }
            _ => return None,
        }
    }
    Some((path.clone(), change?))
}

fn compare(path: &CanonicalPath, change: &Change) -> ComparisonResult {
    let before = match read_text(path) {
        Ok(before) => before,
        Err(why) => return ComparisonResult::Failed(why),
    };
    match change {
        Change::Content(after) if after.len() as u64 > MAX_LEN => {
            ComparisonResult::Failed("it would be longer than 1 MB")
        }
        Change::Content(after) => diff_lines(&before, after, None),
        Change::Edits(edits) => {
            let before = before.replace("\r\n", "\n");
            match apply_edits(&before, edits) {
                Some((after, caveat)) => diff_lines(&before, &after, caveat),
                None => ComparisonResult::Failed("the text to replace was not found"),
            }
        }
    }
}

/// Reads a file of at most [`MAX_LEN`] bytes as UTF-8 without NUL. The error is a reason to show to the user.
fn read_text(path: &CanonicalPath) -> Result<String, &'static str> {
    let read_failed = |problem: io::Error| {
        let refused = problem.kind() == io::ErrorKind::PermissionDenied;
        if refused { "you do not have permission to read it" } else { "it could not be read" }
    };
    let mut bytes = Vec::new();
    let file = bounded_read::open_no_symlinks(path.as_path()).map_err(read_failed)?;
    file.take(MAX_LEN + 1).read_to_end(&mut bytes).map_err(read_failed)?;
    if bytes.len() as u64 > MAX_LEN {
        return Err("it is longer than 1 MB");
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or("it is not text")
}

/// Applies each edit to the first match of its old text, as file servers do. Returns the new text and any reason the
/// server's result may differ. Returns `None` if an old text is missing.
fn apply_edits(before: &str, edits: &[(String, String)]) -> Option<(String, Option<&'static str>)> {
    let (mut text, mut caveat) = (before.to_owned(), None);
    for (old, new) in edits {
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        match text.matches(&old).take(2).count() {
            0 => return None,
            _ if old.is_empty() => return None,
            1 => {}
            _ => caveat = Some("in the first of several places"),
        }
        text = text.replacen(&old, &new, 1);
    }
    Some((text, caveat))
}

/// Returns the diff with context lines. Distant changes are separated by a line that contains a line number.
fn diff_lines(before: &str, after: &str, caveat: Option<&'static str>) -> ComparisonResult {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let (mut text, mut end) = (String::new(), 0);
    for group in diff.grouped_ops(CONTEXT) {
        let start = group.first().map_or(0, |first| first.old_range().start);
        if start > end {
            // Every diff line starts with a sign, so no diff line can look like this separator.
            text.push_str(&format!("\u{2026} line {}\n", start + 1));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            text.push_str(&format!("{}{}", change.tag(), change.value()));
            if change.missing_newline() {
                text.push_str("\n\u{2026} no line end\n");
            }
        }
        end = group.last().map_or(end, |last| last.old_range().end);
    }
    if text.len() > MAX_CHANGE_LEN {
        return ComparisonResult::Failed("the change is longer than 256 kB");
    }
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
    ComparisonResult::Diff { text, added, removed, before: before.lines().count(), caveat }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str, added: usize, removed: usize, before: usize) -> ComparisonResult {
        ComparisonResult::Diff { text: text.into(), added, removed, before, caveat: None }
    }

    fn content(text: &str) -> Change {
        Change::Content(text.to_owned())
    }

    fn edits(pairs: &[(&str, &str)]) -> Change {
        Change::Edits(pairs.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect())
    }

    #[test]
    fn changed_lines_are_shown_with_context() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().canonicalize().unwrap().join("plan");
        let path = CanonicalPath::assume_canonical(file.to_str().unwrap()).unwrap();
        let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
        std::fs::write(&file, &before).unwrap();
        let after = before.replace("10\n", "ten\n");
        let shown = "\u{2026} line 7\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n";
        assert_eq!(compare(&path, &content(&after)), change(shown, 1, 1, 20));
        assert_eq!(compare(&path, &edits(&[("10", "ten")])), change(shown, 1, 1, 20));
        assert_eq!(compare(&path, &content(&before)), change("", 0, 0, 20));
        assert_eq!(
            compare(&path, &edits(&[("ten", "10")])),
            ComparisonResult::Failed("the text to replace was not found")
        );
        let ComparisonResult::Diff { caveat, .. } = compare(&path, &edits(&[("1", "one")])) else { panic!() };
        assert_eq!(caveat, Some("in the first of several places"));
        std::fs::write(&file, "a\r\nb").unwrap();
        let shown = "-a\r\n-b\n\u{2026} no line end\n+a\n+b\n";
        assert_eq!(compare(&path, &content("a\nb\n")), change(shown, 2, 2, 2));
    }

    #[test]
    fn a_failed_comparison_has_a_reason_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let compared = |name: &str| {
            let path = CanonicalPath::assume_canonical(root.join(name).to_str().unwrap()).unwrap();
            compare(&path, &content("x"))
        };
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("folder/secret"), "secret\n").unwrap();
        std::os::unix::fs::symlink(root.join("folder"), root.join("swapped")).unwrap();
        std::os::unix::fs::symlink(root.join("folder/secret"), root.join("link")).unwrap();
        let read_failed = ComparisonResult::Failed("it could not be read");
        assert_eq!(
            [compared("link"), compared("swapped/secret"), compared("folder")],
            [read_failed.clone(), read_failed.clone(), read_failed]
        );
        // Without a symlink, the same file is compared.
        assert_eq!(compared("folder/secret"), change("-secret\n+x\n\u{2026} no line end\n", 1, 1, 1));
        std::fs::write(root.join("bytes"), b"PK\x03\x04\0\xff").unwrap();
        assert_eq!(compared("bytes"), ComparisonResult::Failed("it is not text"));
        std::fs::File::create(root.join("long")).unwrap().set_len(MAX_LEN + 1).unwrap();
        assert_eq!(compared("long"), ComparisonResult::Failed("it is longer than 1 MB"));
    }
}
