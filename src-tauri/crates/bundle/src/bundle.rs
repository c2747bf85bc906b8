//! Verifies and parses bundles.

use crate::archive::{self, Files};
use crate::error::PolicyBundleError;
use crate::key::VerifyingKey;
use crate::signature::{self, MAX_CLOCK_SKEW};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name of the manifest file.
pub(crate) const MANIFEST: &str = ".manifest";

/// Top-level path of IronCurtain's documents.
pub(crate) const ROOT: &str = "ironcurtain";

/// Content of `.manifest`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Human-readable revision. OPA defines no order for revisions.
    #[serde(default)]
    pub revision: String,
    /// Paths of the document trees that the bundle owns.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Application-specific metadata.
    #[serde(default)]
    pub metadata: ManifestMetadata,
}

/// The manifest's `metadata` object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestMetadata {
    /// Sequence number, which increases with each new bundle.
    pub sequence: Option<u64>,
}

/// A bundle whose signature was verified.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyBundle {
    /// Human-readable revision.
    pub revision: String,
    /// Sequence number, which increases with each new bundle.
    pub sequence: u64,
    data: Value,
}

impl PolicyBundle {
    /// Verifies and parses a bundle. `now` is the current time in seconds since the Unix epoch.
    ///
    /// # Errors
    /// Returns [`PolicyBundleError`] if the bundle is malformed or its signature is invalid.
    pub fn open(bytes: &[u8], key: &VerifyingKey, now: u64) -> Result<Self, PolicyBundleError> {
        Self::open_signed_before(bytes, key, now.saturating_add(MAX_CLOCK_SKEW))
    }

    /// Verifies and parses a bundle that was accepted before. Ignores the signing time: otherwise, setting the clock
    /// back would discard the bundle and the protection against older bundles.
    pub(crate) fn open_stored(bytes: &[u8], key: &VerifyingKey) -> Result<Self, PolicyBundleError> {
        Self::open_signed_before(bytes, key, u64::MAX)
    }

    fn open_signed_before(bytes: &[u8], key: &VerifyingKey, latest: u64) -> Result<Self, PolicyBundleError> {
        let files = archive::read(bytes)?;
        signature::verify(&files, key, latest)?;
        let manifest: Manifest = document(&files, MANIFEST)?;
        let sequence = manifest.metadata.sequence.ok_or(PolicyBundleError::NoSequence)?;
        let mut data = Value::Object(Map::new());
        for name in files.keys().filter(|name| name.rsplit('/').next() == Some("data.json")) {
            let folders: Vec<&str> = name.split('/').collect();
            let (_, folders) = folders.split_last().unwrap_or((&"", &[]));
            if !insert(&mut data, folders, document(&files, name)?) {
                let problem = "another file defines the same document".to_owned();
                return Err(PolicyBundleError::Document { name: name.clone(), problem });
            }
        }
        match data.get_mut(ROOT).map(Value::take) {
            Some(data @ Value::Object(_)) if data.get("policy").is_some() => {
                Ok(Self { revision: manifest.revision, sequence, data })
            }
            Some(_) | None => Err(PolicyBundleError::NoPolicy),
        }
    }

    /// Returns the `ironcurtain/NAME` document, or `None` if the bundle does not contain it.
    #[must_use]
    pub fn document(&self, name: &str) -> Option<&Value> {
        self.data.get(name)
    }
}

fn document<T: serde::de::DeserializeOwned>(files: &Files, name: &str) -> Result<T, PolicyBundleError> {
    let problem = |problem: String| PolicyBundleError::Document { name: name.to_owned(), problem };
    let bytes = files.get(name).ok_or_else(|| PolicyBundleError::Missing(name.to_owned()))?;
    serde_json::from_slice(bytes).map_err(|error| problem(error.to_string()))
}

/// Merges a document into the tree at the given path, as OPA does. Returns `false` if it conflicts with another
/// document.
fn insert(into: &mut Value, folders: &[&str], document: Value) -> bool {
    let Value::Object(fields) = into else { return false };
    match folders.split_first() {
        Some((first, rest)) => {
            let inner = fields.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            insert(inner, rest, document)
        }
        None => {
            let Value::Object(document) = document else {
                // A non-object document cannot be merged with others.
                let is_empty = fields.is_empty();
                if is_empty {
                    *into = document;
                }
                return is_empty;
            };
            document.into_iter().all(|(key, value)| match fields.get_mut(&key) {
                None => fields.insert(key, value).is_none(),
                Some(there) => insert(there, &[], value),
            })
        }
    }
}
