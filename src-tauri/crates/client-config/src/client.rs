//! One agent client, and what there is of it on this machine.

use crate::document::{Document, DocumentError, Format, Place};
use crate::edit::Edit;
use crate::entry::{SettingsEntry, Shape, StartCommand};
use crate::locations::{Location, Places};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One agent client.
#[derive(Debug)]
pub struct KnownClient {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The files that its own settings can be in: the first that is there, or the first of all.
    pub(crate) files: &'static [Location],
    /// The file of one project, relative to it, where the client has such a file.
    pub project_file: Option<&'static str>,
    /// Its programs, as they are found on the path.
    pub programs: &'static [&'static str],
    pub(crate) format: Format,
    pub(crate) place: Place,
    pub(crate) shape: Shape,
}

/// A client as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundClient {
    /// Its settings are there.
    Configured(PathBuf),
    /// Its folder or program is there, its settings are not: they would be this file.
    Installed(PathBuf),
    /// Nothing of it is there. Its settings would be this file.
    Missing(PathBuf),
}

impl FoundClient {
    /// The file of its settings.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Configured(file) | Self::Installed(file) | Self::Missing(file) => file,
        }
    }
}

impl KnownClient {
    /// Looks for it. `has_program` says if a program is found on the path.
    #[must_use]
    pub fn find(&self, places: &Places, has_program: impl Fn(&str) -> bool) -> Option<FoundClient> {
        let files: Vec<PathBuf> = self.files.iter().filter_map(|file| file.path(places)).collect();
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            return Some(FoundClient::Configured(file.clone()));
        }
        // A folder that others use as well says nothing.
        let own = |file: &PathBuf| file.parent().is_some_and(|dir| dir.is_dir() && !is_shared(dir, places));
        if let Some(file) = files.iter().find(|file| own(file)) {
            return Some(FoundClient::Installed(file.clone()));
        }
        let first = files.into_iter().next()?;
        let is_there = self.programs.iter().any(|program| has_program(program));
        Some(if is_there { FoundClient::Installed(first) } else { FoundClient::Missing(first) })
    }

    /// The entries of its settings, in their order. A missing text has none.
    ///
    /// # Errors
    /// [`DocumentError`], naming the line.
    pub fn entries(&self, text: Option<&str>) -> Result<Vec<SettingsEntry>, DocumentError> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let entries = Document::parse(self.format, text)?.entries(self.place)?;
        Ok(entries.into_iter().map(|(name, value)| SettingsEntry::of(name, value)).collect())
    }

    /// The text with these entries in it, in place of those of the same names.
    ///
    /// # Errors
    /// [`DocumentError`], naming the line.
    pub fn with(
        &self,
        text: Option<&str>,
        launches: &[(&str, &StartCommand)],
    ) -> Result<Edit, DocumentError> {
        let value = |name: &str, launch: &StartCommand| {
            let named = (self.place.is_list || self.shape == Shape::Goose).then_some(name);
            Some(self.shape.write(named, launch))
        };
        let changes: Vec<_> = launches.iter().map(|(name, launch)| (*name, value(name, launch))).collect();
        self.changed(text, &changes)
    }

    /// The text with entries as they are to be: of this value, or gone.
    ///
    /// # Errors
    /// [`DocumentError`], naming the line.
    pub fn changed(
        &self,
        text: Option<&str>,
        entries: &[(&str, Option<Value>)],
    ) -> Result<Edit, DocumentError> {
        let document = Document::parse(self.format, text.unwrap_or_default())?;
        Ok(Edit::new(text, document.changed(self.place, entries)?))
    }
}

fn is_shared(dir: &Path, places: &Places) -> bool {
    [&places.home, &places.config, &places.xdg].into_iter().any(|shared| shared == dir)
}
