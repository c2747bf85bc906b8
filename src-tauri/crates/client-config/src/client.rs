//! Finds the settings of agent clients on this machine, and reads and edits them.

use crate::document::{Document, DocumentError, Format, Place};
use crate::edit::Edit;
use crate::entry::{SettingsEntry, Shape, StartCommand};
use crate::locations::{Location, Places};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Agent client that IronCurtain supports.
#[derive(Debug)]
pub struct KnownClient {
    /// Id of the client on the command line.
    pub id: &'static str,
    /// Name of the client for display.
    pub name: &'static str,
    /// Possible locations of the user's settings. The client uses the first file that exists. If there is none, the
    /// client creates the first file in the list.
    pub(crate) files: &'static [Location],
    /// Path of a project's settings file relative to the project; `None` if the client has none.
    pub project_file: Option<&'static str>,
    /// Names of the client's programs on the search path.
    pub programs: &'static [&'static str],
    pub(crate) format: Format,
    pub(crate) place: Place,
    pub(crate) shape: Shape,
}

/// Result of searching for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundClient {
    /// The client is in use, with this settings file.
    Configured(PathBuf),
    /// The client is installed, but its settings file does not exist yet. The file would have this path.
    Installed(PathBuf),
    /// The client is not installed. Its settings file would have this path.
    Missing(PathBuf),
}

impl FoundClient {
    /// Returns the path of the settings file.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Configured(file) | Self::Installed(file) | Self::Missing(file) => file,
        }
    }
}

impl KnownClient {
    /// Searches for the client. `has_program` must return `true` if a program is on the search path. Returns `None`
    /// if the client does not exist on this platform.
    #[must_use]
    pub fn find(&self, places: &Places, has_program: impl Fn(&str) -> bool) -> Option<FoundClient> {
        let files: Vec<PathBuf> = self.files.iter().filter_map(|file| file.path(places)).collect();
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            return Some(FoundClient::Configured(file.clone()));
        }
        // An existing folder that several programs share does not prove that the client is installed.
        let own = |file: &PathBuf| file.parent().is_some_and(|dir| dir.is_dir() && !is_shared(dir, places));
        if let Some(file) = files.iter().find(|file| own(file)) {
            return Some(FoundClient::Installed(file.clone()));
        }
        let first = files.into_iter().next()?;
        let is_there = self.programs.iter().any(|program| has_program(program));
        Some(if is_there { FoundClient::Installed(first) } else { FoundClient::Missing(first) })
    }

    /// Returns the server entries in the text of a settings file, in file order. Pass `None` if the file
    /// does not exist.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed.
    pub fn entries(&self, text: Option<&str>) -> Result<Vec<SettingsEntry>, DocumentError> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let entries = Document::parse(self.format, text)?.entries(self.place)?;
        Ok(entries.into_iter().map(|(name, value)| SettingsEntry::of(name, value)).collect())
    }

    /// Adds server entries to a settings file, replacing existing entries with the same names.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed or changed.
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

    /// Sets server entries in a settings file. A value of `None` removes the entry.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed or changed.
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
