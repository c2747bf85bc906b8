//! The record of what was written into clients' settings, and the settings as they were before.
//!
//! - Lies in the state folder, which no agent reaches: settings hold secrets.
//! - Written before the settings are, so that nothing is changed of which nobody knows how it was.

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

/// The clients whose settings were written, by file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    files: BTreeMap<PathBuf, Written>,
    #[serde(skip)]
    folder: PathBuf,
}

/// The changes of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Written {
    /// The name of the copy of the file as it was; none where there was no file.
    pub before: Option<String>,
    /// The copy is what disconnecting gives back: no entry of it started our shim.
    pub is_whole: bool,
    /// SHA-256 of the text that was written.
    pub after: String,
    /// The entries that were written, with what they were before.
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

    /// The changes of a file.
    pub(super) fn of(&self, file: &Path) -> Option<&Written> {
        self.files.get(file)
    }

    /// The text of a file as it was before the first change, if nobody but us has changed it since.
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

    /// Notes what is about to be written into a file, and keeps its text. `entries` are those that are replaced, as they were;
    /// `is_free` says that no entry starts our shim yet.
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
            // The oldest copy is still what disconnecting gives back.
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

    /// Forgets entries of a file, and the file with its last one.
    pub(super) fn forget(&mut self, file: &Path, names: &[String], edit: &Edit) -> Result<(), ClientError> {
        let mut old_copy = None;
        if let Some(written) = self.files.get_mut(file) {
            // Somebody else's changes are not given up for the copy.
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

    /// Removes the copy of a file that nothing leads to any more: settings hold secrets.
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
