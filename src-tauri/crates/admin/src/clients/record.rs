//! Record of the changes to clients' settings, with copies of the original files.
//!
//! - Stored in the state folder, which no agent can read, because settings may contain secrets.
//! - Written before the settings so that the original values are recorded before they change.

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
    files: BTreeMap<PathBuf, FileRecord>,
    #[serde(skip)]
    folder: PathBuf,
}

/// Changes that were made to one settings file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileRecord {
    /// Name of the file with the original contents, or `None` if the settings file did not exist.
    #[serde(rename = "before")]
    pub backup: Option<String>,
    /// `true` if disconnecting can restore the copy, because no entry in it starts the shim.
    #[serde(rename = "isWhole")]
    pub can_restore_backup: bool,
    /// SHA-256 of the file's contents after the change.
    #[serde(rename = "after")]
    pub digest: String,
    /// Entries that were written, with their original values.
    pub entries: BTreeMap<String, Option<Value>>,
}

impl Record {
    pub(super) fn open(home: &Home) -> Result<Self, ClientError> {
        let folder = home.state.join("clients");
        let file = folder.join("record.json");
        let damaged = |problem: serde_json::Error| ClientError::InvalidRecord {
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
    pub(super) fn changes_to(&self, file: &Path) -> Option<&FileRecord> {
        self.files.get(file)
    }

    /// Returns a file's original contents; the inner value is `None` if the file did not exist. Returns `None` if the
    /// original cannot be restored, for example because another program has changed the file since.
    pub(super) fn original_contents(
        &self,
        file: &Path,
        text: Option<&str>,
    ) -> Result<Option<Option<String>>, ClientError> {
        let is_unchanged = |written: &&FileRecord| text.map(digest).as_ref() == Some(&written.digest);
        let Some(written) =
            self.changes_to(file).filter(|written| written.can_restore_backup).filter(is_unchanged)
        else {
            return Ok(None);
        };
        match &written.backup {
            None => Ok(Some(None)),
            Some(copy) => Ok(read(&self.folder.join(copy))?.map(Some)),
        }
    }

    /// Records a planned change and saves a copy of the file. `entries` contains the original values of the replaced
    /// entries. `had_no_shim` is `true` if no entry starts the shim yet.
    pub(super) fn add(
        &mut self,
        file: &Path,
        edit: &Edit,
        entries: BTreeMap<String, Option<Value>>,
        had_no_shim: bool,
    ) -> Result<(), ClientError> {
        private_dir(&self.folder)?;
        let before = edit.before.as_deref();
        let after = digest(edit.after.as_deref().unwrap_or_default());
        let is_unchanged = |written: &FileRecord| before.map(digest).as_ref() == Some(&written.digest);
        let known = self.files.remove(file);
        let mut old_copy = None;
        let mut written = match known {
            // Keeps the oldest copy, because disconnecting restores it.
            Some(written) if is_unchanged(&written) => written,
            known => {
                let (copy, entries) = known.map(|known| (known.backup, known.entries)).unwrap_or_default();
                old_copy = copy;
                let backup = before.map(|text| self.back_up(text)).transpose()?;
                FileRecord { backup, can_restore_backup: had_no_shim, digest: String::new(), entries }
            }
        };
        written.entries.extend(entries);
        written.digest = after;
        self.files.insert(file.to_path_buf(), written);
        self.write()?;
        Ok(self.discard(old_copy)?)
    }

    /// Removes entries from a file's record. Removes the whole record if no entries are left.
    pub(super) fn remove(&mut self, file: &Path, names: &[String], edit: &Edit) -> Result<(), ClientError> {
        let mut old_copy = None;
        if let Some(written) = self.files.get_mut(file) {
            // Restoring the copy would discard changes by other programs.
            written.can_restore_backup &=
                edit.before.as_deref().map(digest).as_ref() == Some(&written.digest);
            written.entries.retain(|name, _| !names.contains(name));
            written.digest = digest(edit.after.as_deref().unwrap_or_default());
            if written.entries.is_empty() {
                old_copy = self.files.remove(file).and_then(|written| written.backup);
            }
        }
        self.write()?;
        Ok(self.discard(old_copy)?)
    }

    fn back_up(&self, text: &str) -> Result<String, FileEditError> {
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
