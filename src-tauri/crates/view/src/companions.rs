//! Recognizes lock, backup and temporary files by name, and finds the file that each one belongs to.
//!
//! - Many programs change `X` by writing a companion such as `X.tmp`, `.X.swp` or `X.lock` and renaming it. The user
//!   is then asked about `X`.
//! - A name alone grants nothing: the file `X` must exist, and changing it requires permission.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Characters that can start the suffix of a companion's name.
const SUFFIX_STARTS: &[u8] = b".~-#_";

/// Maximum number of tracked folders, and of tracked files per folder.
const MAX_COUNT: usize = 1 << 8;

/// Returns the names of the files that `name` could be a companion of, longest first. Each has `true` if the rest of
/// `name` is typical of temporary files, such as `.tmp`.
pub(crate) fn owners(name: &OsStr) -> Vec<(&OsStr, bool)> {
    let bytes = name.as_bytes();
    let mut owners =
        split_owners(bytes, |rest| rest.first().is_some_and(|first| SUFFIX_STARTS.contains(first)));
    // vim: `.X.swp`
    if let Some(rest) = bytes.strip_prefix(b".") {
        owners.extend(split_owners(rest, |rest| rest.starts_with(b".")));
    }
    // Emacs: `.#X` and `#X#`
    owners.extend(bytes.strip_prefix(b".#").map(|owner| (owner, true)));
    owners
        .extend(bytes.strip_prefix(b"#").and_then(|rest| rest.strip_suffix(b"#")).map(|owner| (owner, true)));
    owners.sort_by_key(|(owner, _)| std::cmp::Reverse(owner.len()));
    owners.retain(|(owner, _)| !owner.is_empty() && *owner != b"." && *owner != b"..");
    owners.into_iter().map(|(owner, is_temporary)| (OsStr::from_bytes(owner), is_temporary)).collect()
}

/// Splits `name` at every position. Returns the first part of each split for whose rest `accepts` returns `true`. Each
/// has `true` if its rest is typical of temporary files.
fn split_owners(name: &[u8], accepts: impl Fn(&[u8]) -> bool) -> Vec<(&[u8], bool)> {
    let parts = (1..name.len()).map(|at| name.split_at(at));
    parts.filter(|(_, rest)| accepts(rest)).map(|(owner, rest)| (owner, is_temporary(rest))).collect()
}

fn is_temporary(suffix: &[u8]) -> bool {
    const WORDS: [&str; 12] = [
        ".bak", ".lock", ".new", ".part", ".sw", ".temp", ".tmp", "-journal", "-wal", "-shm", "_tmp", "-tmp",
    ];
    let is_number =
        suffix.get(1..).is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit));
    suffix == b"~" || is_number || WORDS.iter().any(|word| suffix.starts_with(word.as_bytes()))
}

/// Returns `true` if a program generated the whole name. Such a name does not reveal which file it belongs to.
pub(crate) fn is_generated(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    // `sed -i` names its temporary files like this.
    let sed = bytes
        .strip_prefix(b"sed")
        .is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric));
    // vim creates such a file to test whether the folder is writable.
    let vim = (4..=5).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit);
    sed || vim
}

/// Files in each folder that the run has recently opened or asked to open.
#[derive(Debug, Default)]
pub(crate) struct RecentFiles(Mutex<HashMap<PathBuf, Vec<OsString>>>);

impl RecentFiles {
    /// Records the use of a file.
    pub(crate) fn record(&self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= MAX_COUNT && !folders.contains_key(folder) {
            // Without this record, a later question about a companion in a cleared folder names the companion itself.
            folders.clear();
        }
        let names = folders.entry(folder.to_owned()).or_default();
        names.retain(|known| known != name);
        if names.len() >= MAX_COUNT {
            names.remove(0);
        }
        names.push(name.to_owned());
    }

    /// Returns `true` if the file is recorded as used by the run.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folders.get(folder).is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// Returns the file in `folder` that the run used last.
    pub(crate) fn last(&self, folder: &Path) -> Option<PathBuf> {
        let folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folders.get(folder)?.last().map(|name| folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Vec<(&str, bool)> {
        owners(OsStr::new(name))
            .into_iter()
            .map(|(owner, is_temporary)| (owner.to_str().unwrap(), is_temporary))
            .collect()
    }

    #[test]
    fn a_name_belongs_to_the_one_that_it_extends() {
        assert_eq!(found("conf.lock"), [("conf", true)]);
        assert_eq!(found("a.json.tmp.77"), [("a.json.tmp", true), ("a.json", true), ("a", false)]);
        assert_eq!(found("notes.txt~"), [("notes.txt", true), ("notes", false)]);
        assert_eq!(
            found(".notes.txt.swp"),
            [(".notes.txt", true), ("notes.txt", true), (".notes", false), ("notes", false)]
        );
        assert_eq!(found("#a#"), [("#a", false), ("a", true)]);
        assert_eq!(found(".#a"), [("a", true)]);
        assert_eq!(found("db-journal"), [("db", true)]);
        assert_eq!(found("report-final"), [("report", false)]);
        for none in ["plain", ".hidden", "..", ".", "~", "#", ".zshenv"] {
            assert_eq!(found(none), [], "{none}");
        }
    }

    #[test]
    fn made_up_names_are_those_of_known_programs() {
        for name in ["sedAbC123", "4913", "50369"] {
            assert!(is_generated(OsStr::new(name)), "{name}");
        }
        for name in ["sed", "sedative", "sedAbC12.", "2024-1", "123", "123456"] {
            assert!(!is_generated(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn used_files_are_remembered_in_order_and_bounded() {
        let recent = RecentFiles::default();
        for name in ["/f/a", "/f/b", "/g/c", "/f/a"] {
            recent.record(Path::new(name));
        }
        assert_eq!(recent.last(Path::new("/f")), Some(PathBuf::from("/f/a")));
        assert!(recent.contains(Path::new("/f/b")) && !recent.contains(Path::new("/f/c")));
        for number in 0..=MAX_COUNT {
            recent.record(&Path::new("/f").join(number.to_string()));
        }
        assert!(!recent.contains(Path::new("/f/a")) && recent.contains(Path::new("/f/7")));
        for number in 0..=MAX_COUNT {
            recent.record(&Path::new("/").join(number.to_string()).join("x"));
        }
        assert!(!recent.contains(Path::new("/f/7")));
    }
}
