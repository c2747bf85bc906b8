//! Record of the changes to clients' settings, with copies of the original files.
//!
//! - Stored in the state folder, which no agent can read, because settings may contain secrets.
//! - Written before the settings, so that the original values are recorded before they change.

use super::ClientError;
use crate::file_edit::{self, FileEditError};
use ironcurtain_client_config::Edit;
use ironcurtain_config::home::{Home, private_dir};
use ironcurtain_config::read;
use ironcurtain_paths::random_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Record of all settings files that IronCurtain has changed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    files: BTreeMap<PathBuf, Written>,
    #[serde(skip)]
    folder: PathBuf,
}

/// Changes that were made to one settings file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Written {
    /// Name of the file with the original contents, or `None` if the settings file did not exist.
    pub before: Option<String>,
    /// `true` if disconnecting can restore the copy, because no entry in it starts the shim.
    pub is_whole: bool,
    /// SHA-256 of the file's contents after the change.
    pub after: String,
    /// Entries that were written, with their original values.
    pub entries: BTreeMap<String, Option<Value>>,
}

impl Record {
    pub(super) fn open(home: &Home) -> Result<Self, ClientError> {
        let folder = home.state.join("clients");
        let file = folder.join("record.json");
        let damaged = |problem: serde_json::Error| ClientError::Record {
            file: file.clone(),
            problem: problem.to_string(),
        };
        let record: Self = read(&file)?
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(damaged)?
            .unwrap_or_default();
        Ok(Self { folder, ..record })
    }

    /// Returns the recorded changes to a file.
    pub(super) fn of(&self, file: &Path) -> Option<&Written> {
        self.files.get(file)
    }

    /// Returns a file's original contents; the inner value is `None` if the file did not exist. Returns `None` if the
    /// original cannot be restored, for example because another program has changed the file since.
    pub(super) fn untouched(
        &self,
        file: &Path,
        text: Option<&str>,
    ) -> Result<Option<Option<String>>, ClientError> {
        let is_ours = |written: &&Written| text.map(digest).as_ref() == Some(&written.after);
        let Some(written) = self.of(file).filter(|written| written.is_whole).filter(is_ours) else {
            return Ok(None);
        };
        match &written.before {
            None => Ok(Some(None)),
            Some(copy) => Ok(read(&self.folder.join(copy))?.map(Some)),
        }
    }

    /// Records a planned change and saves a copy of the file. `entries` contains the original values of the replaced
    /// entries. `is_free` is `true` if no entry starts the shim yet.
    pub(super) fn note(
        &mut self,
        file: &Path,
        edit: &Edit,
        entries: BTreeMap<String, Option<Value>>,
        is_free: bool,
    ) -> Result<(), ClientError> {
        private_dir(&self.folder)?;
        let before = edit.before.as_deref();
        let after = digest(edit.after.as_deref().unwrap_or_default());
        let is_ours = |written: &Written| before.map(digest).as_ref() == Some(&written.after);
        let known = self.files.remove(file);
        let mut old_copy = None;
        let mut written = match known {
            // Keeps the oldest copy, because disconnecting restores it.
            Some(written) if is_ours(&written) => written,
            known => {
                let (copy, entries) = known.map(|known| (known.before, known.entries)).unwrap_or_default();
                old_copy = copy;
                let before = before.map(|text| self.keep(text)).transpose()?;
                Written { before, is_whole: is_free, after: String::new(), entries }
            }
        };
        written.entries.extend(entries);
        written.after = after;
        self.files.insert(file.to_path_buf(), written);
        self.write()?;
        Ok(self.discard(old_copy)?)
    }

    /// Removes entries from a file's record. Removes the whole record if no entries are left.
    pub(super) fn forget(&mut self, file: &Path, names: &[String], edit: &Edit) -> Result<(), ClientError> {
        let mut old_copy = None;
        if let Some(written) = self.files.get_mut(file) {
            // Restoring the copy would discard changes by other programs.
            written.is_whole &= edit.before.as_deref().map(digest).as_ref() == Some(&written.after);
            written.entries.retain(|name, _| !names.contains(name));
            written.after = digest(edit.after.as_deref().unwrap_or_default());
            if written.entries.is_empty() {
                old_copy = self.files.remove(file).and_then(|written| written.before);
            }
        }
        self.write()?;
        Ok(self.discard(old_copy)?)
    }

    fn keep(&self, text: &str) -> Result<String, FileEditError> {
        let name = random_name().map_err(|source| FileEditError::write(&self.folder, source))?;
        file_edit::replace(&self.folder.join(&name), text)?;
        Ok(name)
    }

    /// Deletes a copy that is no longer needed and may contain secrets.
    fn discard(&self, copy: Option<String>) -> Result<(), FileEditError> {
        let Some(copy) = copy.map(|name| self.folder.join(name)) else { return Ok(()) };
        match std::fs::remove_file(&copy) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileEditError::write(&copy, e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn write(&self) -> Result<(), FileEditError> {
        let file = self.folder.join("record.json");
        let text = serde_json::to_string_pretty(self).map_err(|e| FileEditError::write(&file, e.into()))?;
        file_edit::replace(&file, &text)
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
