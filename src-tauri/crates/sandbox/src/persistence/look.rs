//! Finding the persistence files there are at a writable root and below it.
//!
//! - Nearest first, and no further than a bound: launching must stay quick. What lies beyond is found at the end.
//! - No symlink is followed.

use std::{collections::VecDeque, fs, io, path::Path};

use super::names::{Meaning, Names, has};
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
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            // The sandbox cannot look into it, or find it, any better.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            seen += 1;
            let is_dir = entry.file_type()?.is_dir();
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{dir}/{name}");
            match names.meaning(&name) {
                Meaning::Whole => found.freeze(path),
                Meaning::Parts(_) if !is_dir => found.freeze(path),
                Meaning::Parts(parts) => {
                    for part in parts.keys().map(|part| format!("{path}/{part}")).filter(|path| exists(path))
                    {
                        found.freeze(part);
                    }
                    let is_git = name.eq_ignore_ascii_case(".git");
                    found.pinned.push(path.clone());
                    if !is_git {
                        waiting.push_back(path);
                    }
                }
                Meaning::None if is_dir && !has_parts_above(&dir, &name, names) => {
                    if !shape.hides(&path) && !shape.freezes(&path) {
                        waiting.push_back(path);
                    }
                }
                Meaning::None => {}
            }
        }
    }
    Ok(found)
}

impl Found {
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
