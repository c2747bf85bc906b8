//! The record of what was written into clients' settings, and the settings as they were before.
//!
//! - Lies in the state folder, which no agent reaches: settings hold secrets.
//! - Written before the settings are, so that nothing is changed of which nobody knows how it was.

use super::ClientError;
use ironcurtain_client_config::Edit;
use ironcurtain_daemon::atomic_file;
use ironcurtain_daemon::clock::random_name;
use ironcurtain_daemon::config::read;
use ironcurtain_daemon::home::{Home, private_dir};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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
        let mut written = match self.files.remove(file) {
            // The oldest copy is still what disconnecting gives back.
            Some(written) if is_ours(&written) => written,
            known => Written {
                before: before.map(|text| self.keep(text)).transpose()?,
                is_whole: is_free,
                after: String::new(),
                entries: known.map(|known| known.entries).unwrap_or_default(),
            },
        };
        written.entries.extend(entries);
        written.after = after;
        self.files.insert(file.to_path_buf(), written);
        self.write()
    }

    /// Forgets entries of a file, and the file with its last one.
    pub(super) fn forget(&mut self, file: &Path, names: &[String], edit: &Edit) -> Result<(), ClientError> {
        if let Some(written) = self.files.get_mut(file) {
            written.entries.retain(|name, _| !names.contains(name));
            written.after = digest(edit.after.as_deref().unwrap_or_default());
            if written.entries.is_empty() {
                self.files.remove(file);
            }
        }
        self.write()
    }

    fn keep(&self, text: &str) -> Result<String, ClientError> {
        let failed = |source| ClientError::Write { file: self.folder.clone(), source };
        let name = random_name().map_err(failed)?;
        atomic_file::replace(&self.folder.join(&name), text).map_err(failed)?;
        Ok(name)
    }

    fn write(&self) -> Result<(), ClientError> {
        let file = self.folder.join("record.json");
        let failed = |source| ClientError::Write { file: file.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|e| failed(e.into()))?;
        atomic_file::replace(&file, &text).map_err(failed)
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
