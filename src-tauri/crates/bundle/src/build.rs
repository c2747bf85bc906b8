//! Builds a signed bundle from the policy files in a folder.

use crate::archive::{self, Files};
use crate::bundle::{MANIFEST, Manifest, ManifestMetadata, ROOT};
use crate::key::{KeyError, SigningKey};
use crate::signature::{self, SIGNATURES};
use ironcurtain_paths::bounded_read;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// File names in the folder, each with the name of its document in the bundle.
const DOCUMENTS: [(&str, &str); 3] =
    [("compiled-policy.json", "policy"), ("dynamic-lists.json", "lists"), ("scenarios.json", "scenarios")];

/// Error returned when building a bundle fails.
#[derive(Debug, thiserror::Error)]
pub enum BundleBuildError {
    /// Reading a file failed.
    #[error("failed to read `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A file is not valid JSON.
    #[error("`{path}` is not valid JSON: {problem}")]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Parse error.
        problem: serde_json::Error,
    },
    /// The folder does not contain `compiled-policy.json`.
    #[error("`{0}` has no `compiled-policy.json`")]
    NoPolicy(PathBuf),
    /// Signing failed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Writing the archive failed.
    #[error("failed to write the archive: {0}")]
    Archive(io::Error),
}

/// A bundle's unsigned documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSource(Files);

impl BundleSource {
    /// Reads the documents from a folder.
    ///
    /// # Errors
    /// Returns [`BundleBuildError`] if a file is unreadable or not valid JSON, or if `compiled-policy.json` is missing.
    pub fn read(dir: &Path) -> Result<Self, BundleBuildError> {
        let mut files = Files::new();
        for (file, document) in DOCUMENTS {
            let path = dir.join(file);
            let text = bounded_read::read_text(&path)
                .map_err(|source| BundleBuildError::Io { path: path.clone(), source })?;
            let Some(text) = text else { continue };
            serde_json::from_str::<Value>(&text)
                .map_err(|problem| BundleBuildError::Json { path, problem })?;
            files.insert(format!("{ROOT}/{document}/data.json"), text.into_bytes());
        }
        if files.contains_key(&format!("{ROOT}/policy/data.json")) {
            Ok(Self(files))
        } else {
            Err(BundleBuildError::NoPolicy(dir.to_path_buf()))
        }
    }

    /// Signs the documents and returns the bundle's archive. `now` is the current time in seconds since the Unix epoch.
    ///
    /// # Errors
    /// Returns [`BundleBuildError`] if signing or compressing fails.
    pub fn build(
        self,
        key: &SigningKey,
        revision: String,
        sequence: u64,
        now: u64,
    ) -> Result<Vec<u8>, BundleBuildError> {
        let Self(mut files) = self;
        let metadata = ManifestMetadata { sequence: Some(sequence) };
        let manifest = Manifest { revision, roots: vec![ROOT.to_owned()], metadata };
        files.insert(MANIFEST.to_owned(), serde_json::to_vec(&manifest).unwrap_or_default());
        let signatures = signature::sign(&files, key, now)?;
        files.insert(SIGNATURES.to_owned(), signatures);
        archive::write(&files).map_err(BundleBuildError::Archive)
    }
}
