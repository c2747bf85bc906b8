//! Finds the settings of agent clients on this machine and reads and edits them.

use crate::document::{Document, DocumentError, EntriesPath, Format};
use crate::edit::Edit;
use crate::entry::{SettingsEntry, Shape, StartCommand};
use crate::locations::{ClientDirs, SettingsLocation};
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
    pub(crate) files: &'static [SettingsLocation],
    /// Path of a project's settings file relative to the project; `None` if the client has none.
    pub project_file: Option<&'static str>,
    /// Names of the client's programs on the search path.
    pub programs: &'static [&'static str],
    pub(crate) format: Format,
    pub(crate) entries_path: EntriesPath,
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
    pub fn find(&self, dirs: &ClientDirs, has_program: impl Fn(&str) -> bool) -> Option<FoundClient> {
        let files: Vec<PathBuf> = self.files.iter().filter_map(|file| file.path(dirs)).collect();
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            return Some(FoundClient::Configured(file.clone()));
        }
        // An existing folder that several programs share does not prove that the client is installed.
        let has_own_folder =
            |file: &PathBuf| file.parent().is_some_and(|dir| dir.is_dir() && !is_shared(dir, dirs));
        if let Some(file) = files.iter().find(|file| has_own_folder(file)) {
            return Some(FoundClient::Installed(file.clone()));
        }
        let first = files.into_iter().next()?;
        let is_installed = self.programs.iter().any(|program| has_program(program));
        Some(if is_installed { FoundClient::Installed(first) } else { FoundClient::Missing(first) })
    }

    /// Returns the server entries in the text of a settings file, in file order. Pass `None` if the file
    /// does not exist.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed.
    pub fn entries(&self, text: Option<&str>) -> Result<Vec<SettingsEntry>, DocumentError> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let entries = Document::parse(self.format, text)?.entries(self.entries_path)?;
        Ok(entries.into_iter().map(|(name, value)| SettingsEntry::new(name, value)).collect())
    }

    /// Adds server entries to a settings file, replacing existing entries with the same names.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed or changed.
    pub fn add_entries(
        &self,
        text: Option<&str>,
        launches: &[(&str, &StartCommand)],
    ) -> Result<Edit, DocumentError> {
        let value = |name: &str, launch: &StartCommand| {
            let needs_name = (self.entries_path.is_list || self.shape == Shape::Goose).then_some(name);
            Some(self.shape.write(needs_name, launch))
        };
        let changes: Vec<_> = launches.iter().map(|(name, launch)| (*name, value(name, launch))).collect();
        self.set_entries(text, &changes)
    }

    /// Sets server entries in a settings file. A value of `None` removes the entry.
    ///
    /// # Errors
    /// Returns [`DocumentError`] if the file cannot be parsed or changed.
    pub fn set_entries(
        &self,
        text: Option<&str>,
        entries: &[(&str, Option<Value>)],
    ) -> Result<Edit, DocumentError> {
        let document = Document::parse(self.format, text.unwrap_or_default())?;
        Ok(Edit::new(text, document.set_entries(self.entries_path, entries)?))
    }
}

fn is_shared(dir: &Path, dirs: &ClientDirs) -> bool {
    [&dirs.home, &dirs.config, &dirs.xdg].into_iter().any(|shared| shared == dir)
}
