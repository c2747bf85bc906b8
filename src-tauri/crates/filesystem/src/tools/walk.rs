//! `directory_tree` and `search_files`: recursive listings.
//!
//! - Symlinks are listed but never followed.
//! - The depth and the size of the result are limited.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde_json::{Value, json};

use super::Call;
use super::arguments::Arguments;
use super::glob::{self, Glob, Names};
use super::list::{self, FolderEntry};
use crate::error::ToolError;
use crate::files::TEXT_LIMIT;

/// Maximum depth below the starting directory.
const DEPTH_LIMIT: usize = 200;

pub(super) fn tree(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let exclude = arguments.optional_strings("excludePatterns")?;
    let resolved = call.resolve(path)?;
    let exclude = exclude.into_iter().flat_map(glob::excluding_from_tree).collect();
    let mut tree = Tree { call, exclude, remaining: TEXT_LIMIT };
    let value = tree.list(&list::open(&resolved)?, resolved.path(), "", 0)?;
    serde_json::to_string_pretty(&value)
        .map_err(|error| ToolError::io(error.into(), "print", resolved.path()))
}

pub(super) fn search(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let pattern = arguments.string("pattern")?;
    let exclude = arguments.optional_strings("excludePatterns")?;
    let resolved = call.resolve(path)?;
    let exclude = exclude.into_iter().map(Glob::new).collect();
    let mut search = Search { call, pattern: Glob::new(pattern), exclude, found: String::new() };
    search.run(&list::open(&resolved)?, resolved.path(), "", 0)?;
    if search.found.is_empty() {
        return Ok("No matches found".to_owned());
    }
    search.found.pop();
    Ok(search.found)
}

struct Tree<'a> {
    call: &'a Call<'a>,
    exclude: Vec<Glob>,
    remaining: u64,
}

impl Tree<'_> {
    fn list(
        &mut self,
        directory: &Dir,
        path: &Path,
        relative: &str,
        depth: usize,
    ) -> Result<Value, ToolError> {
        if depth > DEPTH_LIMIT {
            return Err(ToolError::TooDeep { path: path.display().to_string(), limit: DEPTH_LIMIT });
        }
        let mut children = Vec::new();
        for entry in read(directory, path)? {
            self.call.check()?;
            let below = joined(relative, &entry.name);
            let names = Names::new(&below);
            if self.exclude.iter().any(|pattern| pattern.matches(&names)) {
                continue;
            }
            self.reserve(&entry, depth)?;
            if !entry.is_directory {
                children.push(json!({ "name": entry.name, "type": "file" }));
                continue;
            }
            let path = path.join(&entry.file_name);
            let inner = open(directory, &entry, &path)?;
            let inner = self.list(&inner, &path, &below, depth.saturating_add(1))?;
            children.push(json!({ "name": entry.name, "type": "directory", "children": inner }));
        }
        Ok(Value::Array(children))
    }

    /// Adds an entry to the size of the result. The entry takes five lines, indented by its depth.
    fn reserve(&mut self, entry: &FolderEntry, depth: usize) -> Result<(), ToolError> {
        let indent = depth.saturating_mul(4).saturating_add(6).saturating_mul(5);
        let size = entry.name.len().saturating_add(indent).saturating_add(64);
        let left = self.remaining.checked_sub(u64::try_from(size).unwrap_or(u64::MAX));
        self.remaining = left.ok_or_else(|| too_large("the tree"))?;
        Ok(())
    }
}

struct Search<'a> {
    call: &'a Call<'a>,
    pattern: Glob,
    exclude: Vec<Glob>,
    found: String,
}

impl Search<'_> {
    fn run(&mut self, directory: &Dir, path: &Path, relative: &str, depth: usize) -> Result<(), ToolError> {
        for entry in read(directory, path)? {
            self.call.check()?;
            let full = path.join(&entry.file_name);
            if entry.is_link && !self.has_allowed_target(&full) {
                continue;
            }
            let below = joined(relative, &entry.name);
            let names = Names::new(&below);
            if self.exclude.iter().any(|pattern| pattern.matches(&names)) {
                continue;
            }
            if self.pattern.matches(&names) {
                self.add(&full)?;
            }
            if entry.is_directory && depth < DEPTH_LIMIT {
                self.descend(directory, &entry, &full, &below, depth)?;
            }
        }
        Ok(())
    }

    /// Searches a subdirectory, skipping it if it is unreadable. All errors except I/O errors stop the whole search.
    fn descend(
        &mut self,
        directory: &Dir,
        entry: &FolderEntry,
        path: &Path,
        relative: &str,
        depth: usize,
    ) -> Result<(), ToolError> {
        let Ok(inner) = open(directory, entry, path) else {
            return Ok(());
        };
        match self.run(&inner, path, relative, depth.saturating_add(1)) {
            Err(ToolError::Io(_)) => Ok(()),
            outcome => outcome,
        }
    }

    fn has_allowed_target(&self, link: &Path) -> bool {
        link.to_str().is_some_and(|link| self.call.resolve(link).is_ok())
    }

    fn add(&mut self, path: &Path) -> Result<(), ToolError> {
        self.found.push_str(&path.to_string_lossy());
        self.found.push('\n');
        if u64::try_from(self.found.len()).is_ok_and(|length| length <= TEXT_LIMIT) {
            Ok(())
        } else {
            Err(too_large("the list of matches"))
        }
    }
}

fn read(directory: &Dir, path: &Path) -> Result<Vec<FolderEntry>, ToolError> {
    list::entries(directory).map_err(|error| ToolError::io(error, "scandir", path))
}

fn open(directory: &Dir, entry: &FolderEntry, path: &Path) -> Result<Dir, ToolError> {
    let name = PathBuf::from(&entry.file_name);
    directory.open_dir(name).map_err(|error| ToolError::io(error, "scandir", path))
}

fn joined(relative: &str, name: &str) -> String {
    if relative.is_empty() { name.to_owned() } else { format!("{relative}/{name}") }
}

fn too_large(what: &str) -> ToolError {
    let advice = "exclude more or start further down";
    ToolError::TooLarge { what: what.to_owned(), limit: TEXT_LIMIT, advice }
}
