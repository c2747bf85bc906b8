//! What is known of an installed package: one file for each server, among our own.

use super::Installs;
use super::wanted::Wanted;
use crate::config::read;
use crate::edit;
use crate::home::private_dir;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// Version of the format; 1.
    pub(super) schema_version: u32,
    /// What the entry asked for.
    pub wanted: Wanted,
    /// The version that is installed.
    pub version: String,
    /// What the registry says its archive hashes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// When it was installed, in milliseconds since the Unix epoch.
    pub installed_ms: u64,
    /// The folder it is in, below that of all packages.
    pub folder: String,
    /// The hash of everything in the folder.
    pub hash: String,
    /// What the kernel says of everything in the folder: it changes with every write, whatever is written.
    pub stamp: String,
    /// How it is started.
    pub run: Run,
}

/// How an installed package is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// What runs its program.
    pub runtime: Runtime,
    /// Its program, in the folder.
    pub program: String,
}

/// What runs a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Runtime {
    /// The `node` on the path.
    Node,
    /// The Python of the folder's own virtual environment, which is this one of the system's.
    Python(PathBuf),
}

impl Record {
    /// A record of this format.
    pub(super) fn new(wanted: Wanted, version: String, integrity: Option<String>, run: Run) -> Self {
        let unknown = String::new;
        let installed_ms = crate::clock::now_ms();
        let (folder, hash, stamp) = (unknown(), unknown(), unknown());
        Self { schema_version: 1, wanted, version, integrity, installed_ms, folder, hash, stamp, run }
    }
}

impl Installs {
    /// What is known of a server's package; nothing when it is not installed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn record(&self, server: &str) -> Result<Option<Record>, String> {
        let file = self.record_file(server);
        let Some(text) = read(&file).map_err(|e| e.to_string())? else { return Ok(None) };
        let bad = |problem: String| format!("`{}`: {problem}", file.display());
        let record: Record = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        match record.schema_version {
            1 => Ok(Some(record)),
            n => Err(bad(format!("`schemaVersion` is {n}; this program knows 1"))),
        }
    }

    /// The servers that have a record.
    pub(super) fn recorded(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.records).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect()
    }

    /// Writes a server's record, in one step.
    pub(super) fn write(&self, server: &str, record: &Record) -> Result<(), String> {
        private_dir(&self.records).map_err(|e| e.to_string())?;
        let file = self.record_file(server);
        let text = serde_json::to_string_pretty(record).map_err(|e| e.to_string())?;
        edit::replace(&file, &(text + "\n"))
            .map_err(|e| format!("`{}` cannot be written: {e}", file.display()))
    }

    /// Forgets a server's package.
    pub(super) fn forget(&self, server: &str) -> std::io::Result<()> {
        std::fs::remove_file(self.record_file(server))
    }

    /// The folder of a record.
    pub(super) fn folder(&self, record: &Record) -> PathBuf {
        self.files.join(Path::new(&record.folder))
    }

    /// A server's name may have letters, digits, `-`, `_` and `.` only, so this leads nowhere else.
    fn record_file(&self, server: &str) -> PathBuf {
        self.records.join(format!("{server}.json"))
    }
}
