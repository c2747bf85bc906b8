//! Records of installed packages: one file per server in our state folder.

use super::{Packages, RequestedPackage};
use ironcurtain_config::{ConfigError, read};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Python of the operating system.
const PYTHON: &str = "/usr/bin/python3";

/// Version of the format.
const SCHEMA_VERSION: u32 = 1;

/// Identity of an installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// Registry and name.
    pub package: String,
    /// Hash of all files in its folder.
    pub tree: String,
}

/// Record of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageRecord {
    /// Version of the format, 1.
    schema_version: u32,
    /// Package that the entry requested.
    #[serde(rename = "wanted")]
    pub requested: RequestedPackage,
    /// Installed version.
    pub version: String,
    /// Hash of its archive according to the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// Time of installation, in milliseconds since the Unix epoch.
    pub installed_ms: u64,
    /// Folder, relative to the folder of all packages.
    pub folder: String,
    /// Hash of all files in the folder.
    pub hash: String,
    /// Hash of the metadata of all files in the folder, which changes with every write.
    pub stamp: String,
    /// Program to start.
    #[serde(rename = "run")]
    pub entry_point: EntryPoint,
}

/// Program of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryPoint {
    /// Interpreter that runs it.
    pub runtime: Runtime,
    /// Path in the folder.
    pub program: String,
}

/// Interpreter of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Runtime {
    /// `node` from `PATH`.
    Node,
    /// Python of the folder's virtual environment, which was created with this system Python.
    Python(PathBuf),
}

/// Error from reading a record.
#[derive(Debug, thiserror::Error)]
pub enum PackageRecordError {
    /// The file is unreadable.
    #[error("{0}")]
    Read(#[from] ConfigError),
    /// The file is invalid.
    #[error("`{file}`: {source}")]
    NotUnderstood {
        /// Path of the file.
        file: PathBuf,
        /// Error of the parser, with the position.
        source: serde_json::Error,
    },
    /// The file has another version of the format.
    #[error("`{file}`: unsupported `schemaVersion` {version}, expected {SCHEMA_VERSION}")]
    OtherVersion {
        /// Path of the file.
        file: PathBuf,
        /// Version in the file.
        version: u32,
    },
}

impl PackageRecord {
    /// Creates the record of a package that is not in its folder yet.
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

    /// Returns the identity of the package.
    #[must_use]
    pub fn identity(&self) -> PackageIdentity {
        let RequestedPackage { registry, package, .. } = &self.requested;
        PackageIdentity { package: format!("{}:{package}", registry.name()), tree: self.hash.clone() }
    }

    /// Returns the package and version in the syntax of its runner.
    #[must_use]
    pub fn spelled(&self) -> String {
        self.requested.spelled(Some(&self.version))
    }
}

impl Packages {
    /// Returns the record of a server's package, or `None` if it is not installed.
    ///
    /// # Errors
    /// [`PackageRecordError`], which names the file.
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

    /// Returns the folder of a recorded package.
    #[must_use]
    pub fn folder(&self, record: &PackageRecord) -> PathBuf {
        self.files.join(&record.folder)
    }

    /// Returns the path of a server's record. Server names contain only letters, digits, `-`, `_` and `.`, so the path cannot
    /// leave the folder.
    #[must_use]
    pub fn record_file(&self, server: &str) -> PathBuf {
        self.records.join(format!("{server}.json"))
    }
}

/// Folders with the operating system's versions of Python, which every sandbox sees.
const PYTHON_FOLDERS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// Returns the real paths of all versions of Python 3 that every sandbox sees, the newest first.
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
/// The error of the operating system, with the path.
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
