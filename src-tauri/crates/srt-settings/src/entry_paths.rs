//! From the entries of the settings to the paths of a view.
//!
//! - What is allowed and what is denied are read differently where there is doubt: a deny covers every reading of an
//!   entry, an allow none that leads through a symlink.

use std::{fs, path::Path};

use crate::pattern::{PathPatternError, PatternPurpose, expand, is_pattern};
use crate::settings::PathEntry;

/// The list that an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    DenyRead,
    AllowRead,
    AllowWrite,
    DenyWrite,
}

/// The reasons why an entry is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PathEntryError {
    #[error(transparent)]
    Pattern(#[from] PathPatternError),
    #[error("`..` leads nowhere in it: write the whole path")]
    Parent,
    #[error("every sandbox has a `{0}` of its own")]
    Own(&'static str),
    #[error("what is below `/sys` belongs to the kernel")]
    Kernel,
    #[error("`{0}` is not UTF-8")]
    NotText(String),
    #[error("`/` cannot be listed: {0}")]
    Root(std::io::Error),
}

/// The folders in which relative paths and `~` begin.
#[derive(Debug, Clone)]
pub struct Base {
    pub cwd: String,
    pub home: String,
}

impl Base {
    /// The paths that an entry means, each absolute and normal. None when a pattern covers nothing.
    pub fn paths(&self, entry: &PathEntry, list: ListKind) -> Result<Vec<String>, PathEntryError> {
        let (base, written) = self.split(&entry.path);
        let mut found = Vec::new();
        let stripped = if entry.literal { written } else { written.strip_suffix("/**").unwrap_or(written) };
        let text = format!("{base}/{stripped}");
        if entry.literal || !is_pattern(stripped) {
            found.push(normal(&text)?);
        } else {
            let deny = matches!(list, ListKind::DenyRead | ListKind::DenyWrite);
            // A directory may be called `[draft]`, and then that is meant, too.
            if fs::symlink_metadata(&text).is_ok() && (deny || is_itself(&text)) {
                found.push(normal(&text)?);
            }
            // What is written may be only what was named, as `srt` has it on Linux.
            let matching = if list == ListKind::AllowWrite {
                vec![]
            } else {
                expand(base, stripped, if deny { PatternPurpose::Deny } else { PatternPurpose::Allow })?
            };
            // An allow does not follow links that someone may have put there.
            for path in matching.iter().filter(|path| deny || is_itself(path)) {
                found.push(text_of(path)?);
            }
        }
        let mut paths = Vec::new();
        for path in found {
            if path == "/" { paths.extend(tops()?) } else { paths.push(path) }
        }
        paths.iter().try_for_each(|path| own(path, list))?;
        if list == ListKind::AllowWrite || list == ListKind::AllowRead {
            paths.retain(|path| !is_at_or_below(path, "/dev") && !is_at_or_below(path, "/proc"));
        }
        Ok(paths)
    }

    /// The folder in which a path begins, and the rest of it.
    fn split<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (&self.home, rest),
            Some(_) | None if path.starts_with('/') => ("", path),
            Some(_) | None => (&self.cwd, path),
        }
    }
}

/// Of the kernel's own trees, every sandbox has its own, so that there is nothing of the host's to deny.
fn own(path: &str, list: ListKind) -> Result<(), PathEntryError> {
    let is_in = |tree: &&str| is_at_or_below(path, tree);
    match list {
        ListKind::AllowWrite if is_at_or_below(path, "/sys") => Err(PathEntryError::Kernel),
        ListKind::AllowWrite | ListKind::AllowRead => Ok(()),
        ListKind::DenyRead | ListKind::DenyWrite => {
            ["/dev", "/proc"].into_iter().find(is_in).map_or(Ok(()), |tree| Err(PathEntryError::Own(tree)))
        }
    }
}

/// By its spelling; one with `..` as it really is.
fn normal(path: &str) -> Result<String, PathEntryError> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return text_of(&fs::canonicalize(path).map_err(|_| PathEntryError::Parent)?);
    }
    Ok(format!("/{}", parts.join("/")))
}

/// The paths that `/` stands for: all that is in it and not the kernel's. Links there lead to what is listed itself.
fn tops() -> Result<Vec<String>, PathEntryError> {
    let mut tops = Vec::new();
    for entry in fs::read_dir("/").map_err(PathEntryError::Root)? {
        let entry = entry.map_err(PathEntryError::Root)?;
        let link = entry.file_type().map_err(PathEntryError::Root)?.is_symlink();
        let path = text_of(&entry.path())?;
        if !link && !matches!(path.as_str(), "/proc" | "/dev" | "/sys") {
            tops.push(path);
        }
    }
    tops.sort();
    Ok(tops)
}

/// True if a normal path is this tree or lies in it.
fn is_at_or_below(path: &str, tree: &str) -> bool {
    Path::new(path).starts_with(tree)
}

fn is_itself(path: impl AsRef<Path>) -> bool {
    fs::canonicalize(&path).is_ok_and(|real| real == path.as_ref())
}

fn text_of(path: &Path) -> Result<String, PathEntryError> {
    path.to_str().map(str::to_owned).ok_or_else(|| PathEntryError::NotText(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str, list: ListKind) -> Result<Vec<String>, String> {
        let base = Base { cwd: "/nonexistent/w".into(), home: "/nonexistent/h".into() };
        base.paths(&PathEntry { path: path.into(), literal: false }, list).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_is_read_from_where_it_is_meant() {
        for (written, expected) in [
            (".", "/nonexistent/w"),
            ("./a//b/", "/nonexistent/w/a/b"),
            ("~", "/nonexistent/h"),
            ("~/.x", "/nonexistent/h/.x"),
            ("~x", "/nonexistent/w/~x"),
            ("/a/./b", "/a/b"),
            ("src/**", "/nonexistent/w/src"),
        ] {
            assert_eq!(paths(written, ListKind::AllowWrite), Ok(vec![expected.to_owned()]), "{written}");
        }
        let base = Base { cwd: "/nonexistent/w".into(), home: "/nonexistent/h".into() };
        let marked = PathEntry { path: "*.env".into(), literal: true };
        assert_eq!(base.paths(&marked, ListKind::DenyWrite).unwrap(), ["/nonexistent/w/*.env"]);
    }

    #[test]
    fn the_root_is_what_is_in_it() {
        let tops = paths("/", ListKind::DenyRead).unwrap();
        assert!(tops.contains(&"/usr".to_owned()) && tops.contains(&"/etc".to_owned()));
        assert!(!tops.contains(&"/proc".to_owned()) && !tops.contains(&"/dev".to_owned()));
        assert_eq!(paths("/**", ListKind::AllowWrite).unwrap(), tops);
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        assert_eq!(paths("*.log", ListKind::AllowWrite), Ok(vec![]));
        assert!(paths("/dev/shm", ListKind::DenyRead).unwrap_err().contains("`/dev` of its own"));
        assert!(paths("/sys/fs", ListKind::AllowWrite).unwrap_err().contains("kernel"));
        assert!(paths("../x", ListKind::AllowWrite).unwrap_err().contains("`..` leads nowhere"));
        assert_eq!(paths("/dev/null", ListKind::AllowWrite), Ok(vec![]));
    }
}
