//! Package records: one JSON file per server in the state directory.

use super::{Packages, RequestedPackage};
use ironcurtain_config::{ConfigError, read};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// System Python interpreter, which runs PyPI packages.
const PYTHON: &str = "/usr/bin/python3";

/// Value of `schemaVersion` that this build reads and writes.
const SCHEMA_VERSION: u32 = 1;

/// Identity of an installed package, as approved by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// Registry and package name, as `npm:NAME` or `pypi:NAME`.
    pub package: String,
    /// SHA-256 hash of all files in the package's folder, from [`tree::content_hash`](crate::tree::content_hash).
    pub content_hash: String,
}

/// Record of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageRecord {
    /// Version of the record format; always 1.
    schema_version: u32,
    /// Package that the entry in `mcp-servers.json` requested when it was installed.
    #[serde(rename = "wanted")]
    pub requested: RequestedPackage,
    /// Installed version.
    pub version: String,
    /// Hash of the package archive as published by the registry, or `None` if the registry publishes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// Time of installation, in milliseconds since the Unix epoch.
    pub installed_ms: u64,
    /// Name of the package's folder, relative to [`Packages::files`].
    pub folder: String,
    /// SHA-256 hash of all files in the package's folder.
    pub hash: String,
    /// SHA-256 hash of the files' metadata. The metadata includes `ctime`, so the hash changes with every write.
    #[serde(rename = "stamp")]
    pub metadata_hash: String,
    /// Program to start.
    #[serde(rename = "run")]
    pub entry_point: EntryPoint,
}

/// Program to start from an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryPoint {
    /// Interpreter that runs the program.
    pub runtime: Runtime,
    /// Path of the program, relative to the package's folder.
    pub program: String,
}

/// Interpreter that runs a package's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Runtime {
    /// `node`, looked up in `PATH`.
    Node,
    /// Python of the virtual environment. Contains the real path of the system Python that created the environment.
    Python(PathBuf),
}

/// Failure to read a package record.
#[derive(Debug, thiserror::Error)]
pub enum PackageRecordError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] ConfigError),
    /// The file is not a valid record.
    #[error("failed to parse `{file}`: {source}")]
    Invalid {
        /// Path of the record.
        file: PathBuf,
        /// Parser error, with the line and column.
        source: serde_json::Error,
    },
    /// The file has an unsupported `schemaVersion`.
    #[error("`{file}`: unsupported `schemaVersion` {version}, expected {SCHEMA_VERSION}")]
    UnsupportedVersion {
        /// Path of the record.
        file: PathBuf,
        /// `schemaVersion` in the file.
        version: u32,
    },
}

impl PackageRecord {
    /// Creates a record without folder and hashes, which the installer fills in.
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
            metadata_hash: String::new(),
            entry_point,
        }
    }

    /// Returns the package's registry, name and file hash.
    #[must_use]
    pub fn identity(&self) -> PackageIdentity {
        let RequestedPackage { registry, package, .. } = &self.requested;
        PackageIdentity { package: format!("{}:{package}", registry.name()), content_hash: self.hash.clone() }
    }

    /// Returns the package with its installed version, as its runner expects it (`NAME@VERSION` or `NAME==VERSION`).
    #[must_use]
    pub fn package_spec(&self) -> String {
        self.requested.package_spec(Some(&self.version))
    }
}

impl Packages {
    /// Returns the record of a server's package, or `None` if it is not installed.
    ///
    /// # Errors
    /// Returns a [`PackageRecordError`] if the file cannot be read, is invalid or has another `schemaVersion`.
    pub fn record(&self, server: &str) -> Result<Option<PackageRecord>, PackageRecordError> {
        let file = self.record_file(server);
        let Some(text) = read(&file)? else { return Ok(None) };
        let record: PackageRecord = match serde_json::from_str(&text) {
            Ok(record) => record,
            Err(source) => return Err(PackageRecordError::Invalid { file, source }),
        };
        match record.schema_version {
            SCHEMA_VERSION => Ok(Some(record)),
            version => Err(PackageRecordError::UnsupportedVersion { file, version }),
        }
    }

    /// Returns the folder of a recorded package.
    #[must_use]
    pub fn folder(&self, record: &PackageRecord) -> PathBuf {
        self.files.join(&record.folder)
    }

    /// Returns the path of a server's record. Server names contain only letters, digits, `-`, `_` and `.`, so the path
    /// stays inside the folder.
    #[must_use]
    pub fn record_file(&self, server: &str) -> PathBuf {
        self.records.join(format!("{server}.json"))
    }
}

/// Folders of the system's Python versions, which every sandbox can see.
const PYTHON_FOLDERS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// Returns the real paths of all Python 3 versions that every sandbox can see, newest first.
#[must_use]
pub fn installed_pythons() -> Vec<PathBuf> {
    pythons_in(&PYTHON_FOLDERS.map(Path::new))
}

fn pythons_in(folders: &[&Path]) -> Vec<PathBuf> {
    let files = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = files
        .filter_map(|file| {
            let minor = file.file_name().to_str()?.strip_prefix("python3.")?.parse().ok()?;
            Some((minor, file.path().canonicalize().ok()?))
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    let mut paths: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
    paths.dedup();
    paths
}

/// Returns the real path of the system's Python.
///
/// # Errors
/// Returns an I/O error with the path if the interpreter does not exist.
pub fn system_python() -> io::Result<PathBuf> {
    Path::new(PYTHON).canonicalize().map_err(|e| {
        io::Error::new(e.kind(), format!("failed to find `{PYTHON}`, which runs PyPI packages: {e}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_python_are_sorted_by_number() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["python3.9", "python3.12", "python3.11-config", "python3", "python3.14t", "pip3.12"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        std::os::unix::fs::symlink(at("python3.12"), at("python3.10")).unwrap();
        let found = pythons_in(&[dir.path(), Path::new("/nosuch")]);
        assert_eq!(found, [at("python3.12"), at("python3.9")]);
    }
}
