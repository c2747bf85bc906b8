//! Stores the last valid bundle on disk.
//!
//! - The bundle is stored exactly as downloaded, and its signature is verified again on each read.
//! - A stored bundle is only replaced by itself or by a bundle with a higher sequence number.

use crate::archive::MAX_BUNDLE_LEN;
use crate::bundle::PolicyBundle;
use crate::error::PolicyBundleError;
use crate::key::VerifyingKey;
use ironcurtain_paths::{atomic_file, bounded_read};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Error returned when a bundle cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleStoreError {
    /// The bundle is invalid.
    #[error("rejected the bundle: {0}")]
    Refused(#[from] PolicyBundleError),
    /// The bundle is older than the stored bundle.
    #[error("rejected the bundle: its sequence number {found} is lower than the current {stored}")]
    Rollback {
        /// Sequence number of the refused bundle.
        found: u64,
        /// Sequence number of the stored bundle.
        stored: u64,
    },
    /// The stored bundle has the same sequence number but different content.
    #[error("rejected the bundle: a different bundle already has sequence number {0}")]
    SameSequence(u64),
    /// Reading or writing the file failed.
    #[error("failed to access `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// File that contains the last valid bundle.
#[derive(Debug, Clone)]
pub struct BundleStore(PathBuf);

impl BundleStore {
    /// Creates a store for the given file.
    #[must_use]
    pub fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// Returns the stored bundle, or `None` if no bundle is stored.
    ///
    /// # Errors
    /// Returns [`BundleStoreError`] if the file cannot be read or its bundle is invalid.
    pub fn read(&self, key: &VerifyingKey) -> Result<Option<PolicyBundle>, BundleStoreError> {
        let io = |source| BundleStoreError::Io { path: self.0.clone(), source };
        let file = match bounded_read::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BUNDLE_LEN as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
        Ok(Some(PolicyBundle::open_stored(&bytes, key)?))
    }

    /// Verifies a bundle and stores it, replacing the stored bundle `stored`.
    ///
    /// # Errors
    /// Returns [`BundleStoreError`] if the bundle is refused or cannot be written. The stored bundle is then unchanged.
    pub fn replace(
        &self,
        stored: Option<&PolicyBundle>,
        bytes: &[u8],
        key: &VerifyingKey,
        now: u64,
    ) -> Result<PolicyBundle, BundleStoreError> {
        let bundle = PolicyBundle::open(bytes, key, now)?;
        if let Some(stored) = stored {
            if bundle.sequence < stored.sequence {
                return Err(BundleStoreError::Rollback { found: bundle.sequence, stored: stored.sequence });
            }
            if bundle.sequence == stored.sequence && bundle != *stored {
                return Err(BundleStoreError::SameSequence(stored.sequence));
            }
        }
        let io = |source| BundleStoreError::Io { path: self.0.clone(), source };
        if let Some(dir) = self.0.parent() {
            std::fs::create_dir_all(dir).map_err(io)?;
        }
        atomic_file::replace_bytes(&self.0, bytes).map_err(io)?;
        Ok(bundle)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}
