//! Resolves a path component by component, following symlinks.

use super::{Link, PathError, PathKind, Resolution};
use crate::CanonicalPath;
use std::io;

/// Maximum number of symlinks followed in one path, as in the Linux kernel.
const MAX_LINKS: usize = 40;
/// Maximum length of a file name in bytes, as on all file systems on Linux and macOS.
const MAX_NAME_LEN: usize = 255;

/// State of walking a path from the root.
pub(super) struct Walk<'a> {
    raw: &'a str,
    /// Canonical path walked so far, which is empty for the root.
    walked: String,
    /// Number of components at the end of `walked` that do not exist.
    missing_count: usize,
    /// Type of the file at the existing part of `walked`.
    kind: PathKind,
    links: Vec<Link>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(raw: &'a str) -> Self {
        Self { raw, walked: String::new(), missing_count: 0, kind: PathKind::Folder, links: Vec::new() }
    }

    /// Walks an absolute path to its end and returns the result.
    pub(super) fn run(mut self, absolute: &str) -> Result<Resolution, PathError> {
        if absolute.contains('\0') {
            return Err(PathError::Nul(self.raw.replace('\0', "\\0")));
        }
        // Parts of the path and of followed symlinks that have not been walked yet, innermost last.
        let mut pending = vec![(absolute.to_owned(), 0)];
        while let Some((text, at)) = pending.last_mut() {
            let rest = text.get(*at..).unwrap_or_default();
            if rest.is_empty() {
                pending.pop();
                continue;
            }
            let part = rest.split('/').next().unwrap_or_default().to_owned();
            *at += (part.len() + 1).min(rest.len());
            if let Some(link) = self.step(&part)? {
                pending.push((link, 0));
            }
        }
        let target = if self.missing_count > 0 { PathKind::Missing } else { self.kind };
        Ok(Resolution { path: CanonicalPath::from_walk(&self.walked), links: self.links, target })
    }

    /// Walks one component. Returns the target if the component is a symlink.
    fn step(&mut self, part: &str) -> Result<Option<String>, PathError> {
        match part {
            "" | "." => Ok(None),
            ".." => {
                self.step_up();
                Ok(None)
            }
            name if self.missing_count > 0 || self.kind != PathKind::Folder => {
                self.push(name);
                self.missing_count += 1;
                Ok(None)
            }
            name => self.enter(name),
        }
    }

    fn step_up(&mut self) {
        self.pop();
        if self.missing_count > 0 {
            self.missing_count -= 1;
        } else {
            // The parent of an existing file is a folder, and the root is its own parent.
            self.kind = PathKind::Folder;
        }
    }

    /// Enters `name` in an existing folder. Returns the target if `name` is a symlink.
    fn enter(&mut self, name: &str) -> Result<Option<String>, PathError> {
        self.push(name);
        let found = match std::fs::symlink_metadata(&self.walked) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound || name.len() > MAX_NAME_LEN => {
                super::unicode_twins::reject_twin(&self.walked)?;
                self.missing_count = 1;
                return Ok(None);
            }
            Err(source) => return Err(PathError::Unreadable { path: self.walked.clone(), source }),
        };
        if found.is_symlink() {
            return self.follow().map(Some);
        }
        self.kind = PathKind::from_metadata(&found);
        Ok(None)
    }

    fn follow(&mut self) -> Result<String, PathError> {
        if self.links.len() >= MAX_LINKS {
            return Err(PathError::TooManyLinks(self.raw.to_owned()));
        }
        let target = match std::fs::read_link(&self.walked) {
            Ok(target) => target,
            Err(source) => return Err(PathError::Unreadable { path: self.walked.clone(), source }),
        };
        let Some(target) = target.to_str().map(str::to_owned) else {
            return Err(PathError::NotUtf8(self.walked.clone()));
        };
        let path = CanonicalPath::from_walk(&self.walked);
        if super::no_symlinks::is_magic_link(&self.walked) {
            return Err(PathError::MagicLink(self.walked.clone()));
        }
        self.links.push(Link { path, target: target.clone() });
        if target.starts_with('/') {
            self.walked.clear();
        } else {
            self.pop();
        }
        Ok(target)
    }

    fn push(&mut self, name: &str) {
        self.walked.push('/');
        self.walked.push_str(name);
    }

    fn pop(&mut self) {
        let parent = self.walked.rfind('/').unwrap_or(0);
        self.walked.truncate(parent);
    }
}

impl PathKind {
    pub(super) fn from_metadata(found: &std::fs::Metadata) -> Self {
        if found.is_dir() {
            Self::Folder
        } else if found.is_file() {
            Self::File { bytes: found.len() }
        } else {
            Self::Special
        }
    }
}
