//! The record of an installed package: one file for each server, among our own.

use super::{Packages, RequestedPackage};
use ironcurtain_config::{ConfigError, read};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The system's own Python.
const PYTHON: &str = "/usr/bin/python3";

/// The version of the format.
const SCHEMA_VERSION: u32 = 1;

/// The marks that an installed package is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// Its registry and name.
    pub package: String,
    /// The hash of everything in its folder.
    pub tree: String,
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageRecord {
    /// The version of the format; 1.
    schema_version: u32,
    /// The package that the entry asked for.
    #[serde(rename = "wanted")]
    pub requested: RequestedPackage,
    /// The version that is installed.
    pub version: String,
    /// The hash of its archive, as the registry says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// The time it was installed at, in milliseconds since the Unix epoch.
    pub installed_ms: u64,
    /// The folder it is in, below that of all packages.
    pub folder: String,
    /// The hash of everything in the folder.
    pub hash: String,
    /// The kernel's word on everything in the folder: it changes with every write, whatever is written.
    pub stamp: String,
    /// The program that is started.
    #[serde(rename = "run")]
    pub entry_point: EntryPoint,
}

/// The program of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryPoint {
    /// The interpreter that runs it.
    pub runtime: Runtime,
    /// Its path in the folder.
    pub program: String,
}

/// An interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Runtime {
    /// The `node` on the path.
    Node,
    /// The Python of the folder's own virtual environment, which is this one of the system's.
    Python(PathBuf),
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackageRecordError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] ConfigError),
    /// The file is not understood.
    #[error("`{file}`: {source}")]
    NotUnderstood {
        /// The file.
        file: PathBuf,
        /// The error, with its line.
        source: serde_json::Error,
    },
    /// The file is of another version of the format.
    #[error("`{file}`: `schemaVersion` is {version}; this program knows {SCHEMA_VERSION}")]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The version.
        version: u32,
    },
}

impl PackageRecord {
    /// The record of a package that is not in its folder yet.
    #[must_use]
    pub fn new(
        requested: RequestedPackage,
        version: String,
        integrity: Option<String>,
        entry_point: EntryPoint,
    ) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            requested,
            version,
            integrity,
            installed_ms: ironcurtain_audit::clock::now_ms(),
            folder: String::new(),
            hash: String::new(),
            stamp: String::new(),
            entry_point,
        }
    }

    /// The marks that the package is known by.
    #[must_use]
    pub fn identity(&self) -> PackageIdentity {
        let RequestedPackage { registry, package, .. } = &self.requested;
        PackageIdentity { package: format!("{}:{package}", registry.name()), tree: self.hash.clone() }
    }

    /// The package and its version, as its runner is told of it.
    #[must_use]
    pub fn spelled(&self) -> String {
        self.requested.spelled(Some(&self.version))
    }
}

impl Packages {
    /// The record of a server's package; nothing when it is not installed.
    ///
    /// # Errors
    /// [`PackageRecordError`], naming the file.
    pub fn record(&self, server: &str) -> Result<Option<PackageRecord>, PackageRecordError> {
        let file = self.record_file(server);
        let Some(text) = read(&file)? else { return Ok(None) };
        let record: PackageRecord = match serde_json::from_str(&text) {
            Ok(record) => record,
            Err(source) => return Err(PackageRecordError::NotUnderstood { file, source }),
        };
        match record.schema_version {
            SCHEMA_VERSION => Ok(Some(record)),
            version => Err(PackageRecordError::OtherVersion { file, version }),
        }
    }

    /// The folder of a record.
    #[must_use]
    pub fn folder(&self, record: &PackageRecord) -> PathBuf {
        self.files.join(&record.folder)
    }

    /// The file of a server's record. A server's name may have letters, digits, `-`, `_` and `.` only, so this leads nowhere
    /// else.
    #[must_use]
    pub fn record_file(&self, server: &str) -> PathBuf {
        self.records.join(format!("{server}.json"))
    }
}

/// The system's own Python, as a file.
///
/// # Errors
/// The operating system's answer, with the path.
pub fn system_python() -> io::Result<PathBuf> {
    Path::new(PYTHON).canonicalize().map_err(|e| {
        io::Error::new(e.kind(), format!("`{PYTHON}`, which runs packages of PyPI, cannot be used: {e}"))
    })
}
