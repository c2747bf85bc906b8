//! Finding the persistence files there are at a writable root and below it.
//!
//! - Nearest first, and no further than a bound: launching must stay quick. What lies beyond is found at the end.
//! - No symlink is followed.

use std::{collections::VecDeque, fs, io, path::Path};

use super::{
    names::{Meaning, Names, has},
    repository,
};
use crate::shape::Shape;

/// How many names are looked at. The root itself is always looked at whole.
const BOUND: usize = 5_000;

/// What is there, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// To be closed for writing.
    pub(super) frozen: Vec<String>,
    /// Directories with such in them: to be kept where they are.
    pub(super) pinned: Vec<String>,
    /// Names at the root that nothing has, and whether each is a directory's; directories before what is in them.
    pub(super) missing: Vec<(String, bool)>,
    /// Whether everything was looked at.
    pub(super) whole: bool,
}

/// Looks at `root`, but not into what `shape` hides or closes.
pub(super) fn look(root: &str, names: &Names, shape: &Shape) -> io::Result<Found> {
    let mut found = Found { whole: true, ..Found::default() };
    if names.protect(root) {
        found.frozen.push(root.to_owned());
        return Ok(found);
    }
    if !Path::new(root).is_dir() {
        return Ok(found);
    }
    found.missing_at(root, names);
    let mut waiting = VecDeque::from([root.to_owned()]);
    // What a directory means by its name, its parts included, is found by its parent; the root has none here.
    if let Some((_, name)) = root.rsplit_once('/')
        && let Meaning::Parts(parts) = names.meaning(name)
    {
        found.frozen.extend(parts.keys().map(|part| format!("{root}/{part}")).filter(|path| exists(path)));
        found.missing.extend(
            parts
                .iter()
                .map(|(part, directory)| (format!("{root}/{part}"), *directory))
                .filter(|(path, _)| !exists(path)),
        );
        if name.eq_ignore_ascii_case(".git") {
            waiting.clear();
        }
    }
    let mut seen = 0;
    while let Some(dir) = waiting.pop_front() {
        if seen > BOUND {
            found.whole = false;
            break;
        }
        let entries = match entries(&dir) {
            Ok(entries) => entries,
            // What cannot be found by its path, as one that is too long, is found at the end.
            Err(_) if dir != root => {
                found.whole = false;
                continue;
            }
            Err(error) => return Err(error),
        };
        seen += entries.len();
        if repository::is_one(|sign| entries.iter().any(|(name, _)| name == sign)) {
            found.freeze_parts(&dir, names.of_repository().into_iter().flat_map(|parts| parts.keys()));
        }
        for (name, is_dir) in entries {
            let enter = found.judge(&dir, &name, is_dir, names);
            let path = format!("{dir}/{name}");
            if enter && !shape.hides(&path) && !shape.freezes(&path) {
                waiting.push_back(path);
            }
        }
    }
    Ok(found)
}

/// The names in a directory, and whether each is a directory's; none of a directory that cannot be looked into, since the
/// sandbox cannot look into it, or find it, any better.
fn entries(dir: &str) -> io::Result<Vec<(String, bool)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            return Ok(vec![]);
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_dir = entry.file_type()?.is_dir();
        found.extend(entry.file_name().into_string().ok().map(|name| (name, is_dir)));
    }
    Ok(found)
}

impl Found {
    /// What a name in a directory means; returns whether to look into it.
    fn judge(&mut self, dir: &str, name: &str, is_dir: bool, names: &Names) -> bool {
        let path = format!("{dir}/{name}");
        match names.meaning(name) {
            Meaning::Whole => self.freeze(path),
            Meaning::Parts(_) if !is_dir => self.freeze(path),
            Meaning::Parts(parts) => {
                self.freeze_parts(&path, parts.keys());
                self.pinned.push(path);
                return !name.eq_ignore_ascii_case(".git");
            }
            Meaning::None => return is_dir && !has_parts_above(dir, name, names),
        }
        false
    }

    /// Closes what is there of the parts of a directory.
    fn freeze_parts<'a>(&mut self, dir: &str, parts: impl Iterator<Item = &'a &'static str>) {
        let paths = parts.map(|part| format!("{dir}/{part}")).filter(|path| exists(path));
        paths.for_each(|path| self.freeze(path));
    }

    /// Closes a path, and where a symlink leads, since that is what will be run.
    fn freeze(&mut self, path: String) {
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink())
            && let Some(real) =
                fs::canonicalize(&path).ok().and_then(|real| real.into_os_string().into_string().ok())
        {
            self.frozen.push(real);
        }
        self.frozen.push(path);
    }

    fn missing_at(&mut self, root: &str, names: &Names) {
        for (name, directory) in names.whole() {
            let path = format!("{root}/{name}");
            if !exists(&path) {
                self.missing.push((path, directory));
            }
        }
        for (name, parts) in names.parts() {
            let above = format!("{root}/{name}");
            let there = fs::symlink_metadata(&above).ok();
            // A repository may be made; what it must not have is found at the end.
            if there.is_none() && name == ".git" || there.is_some_and(|there| !there.is_dir()) {
                continue;
            }
            if !exists(&above) {
                self.missing.push((above.clone(), true));
                self.pinned.push(above.clone());
            }
            for (part, directory) in parts {
                let path = format!("{above}/{part}");
                if !exists(&path) {
                    self.missing.push((path, *directory));
                }
            }
        }
    }
}

/// Whether `name` in `dir` was dealt with as a part of it.
fn has_parts_above(dir: &str, name: &str, names: &Names) -> bool {
    let above = dir.rsplit_once('/').map_or("", |(_, above)| above);
    matches!(names.meaning(above), Meaning::Parts(parts) if has(parts, name))
}

fn exists(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}
