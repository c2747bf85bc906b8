//! File with the paired keys: the desktops of a remote machine, or the remote machines of a desktop.

use crate::channel::PeerKey;
use ironcurtain_paths::{atomic_file, bounded_read};
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum length of a peer's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Failure to read or write the file.
#[derive(Debug, thiserror::Error)]
pub enum PairedError {
    /// Reading or writing failed.
    #[error("failed to access `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// The file is malformed.
    #[error("`{path}` is invalid: {source}")]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Parser error.
        source: serde_json::Error,
    },
}

/// Paired keys by name. Every method rereads the file.
#[derive(Debug, Clone)]
pub struct PairedKeys(PathBuf);

impl PairedKeys {
    /// Creates a handle to the file, which does not have to exist.
    #[must_use]
    pub fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the keys by name.
    ///
    /// # Errors
    /// Returns [`PairedError`] if the file cannot be read or is malformed.
    pub fn read(&self) -> Result<BTreeMap<String, PeerKey>, PairedError> {
        let text = bounded_read::read_text(&self.0).map_err(|source| self.io(source))?;
        let parse = |text: String| serde_json::from_str(&text);
        let keys = text.map(parse).transpose();
        keys.map(Option::unwrap_or_default)
            .map_err(|source| PairedError::Invalid { path: self.0.clone(), source })
    }

    /// Adds or replaces a key.
    ///
    /// # Errors
    /// Returns [`PairedError`] if the file cannot be read or written.
    pub fn add(&self, name: &str, key: PeerKey) -> Result<(), PairedError> {
        let mut keys = self.read()?;
        keys.insert(name.to_owned(), key);
        self.write(&keys)
    }

    /// Removes a key. Returns `false` if no key has this name.
    ///
    /// # Errors
    /// Returns [`PairedError`] if the file cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<bool, PairedError> {
        let mut keys = self.read()?;
        if keys.remove(name).is_none() {
            return Ok(false);
        }
        self.write(&keys).map(|()| true)
    }

    fn write(&self, keys: &BTreeMap<String, PeerKey>) -> Result<(), PairedError> {
        let text = serde_json::to_string_pretty(keys)
            .map_err(|source| PairedError::Invalid { path: self.0.clone(), source })?;
        atomic_file::replace(&self.0, &format!("{text}\n")).map_err(|source| self.io(source))
    }

    fn io(&self, source: io::Error) -> PairedError {
        PairedError::Io { path: self.0.clone(), source }
    }
}

/// Returns `true` if a peer's name is not empty, not too long, and displayed exactly as it is written.
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    let is_shown = visible::line(name) == name && visible::spaces(name) == name && name.trim() == name;
    !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && is_shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChannelKey;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_kept_privately_and_an_invalid_file_is_no_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let keys = PairedKeys::new(dir.path().join("desktops.json"));
        assert!(keys.read().unwrap().is_empty());
        let [first, second] = [1, 2].map(|seed| ChannelKey::from_seed(&[seed; 32]).unwrap().public());
        keys.add("one", first).unwrap();
        keys.add("two", second).unwrap();
        assert_eq!(keys.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(keys.read().unwrap().into_values().collect::<Vec<_>>(), [first, second]);
        assert!(keys.remove("one").unwrap());
        assert!(!keys.remove("one").unwrap());
        assert_eq!(keys.read().unwrap().into_values().collect::<Vec<_>>(), [second]);
        std::fs::write(keys.path(), "{\"two\": \"nonsense\"}").unwrap();
        assert!(matches!(keys.read(), Err(PairedError::Invalid { .. })));
        assert!(matches!(keys.add("one", first), Err(PairedError::Invalid { .. })));
    }

    #[test]
    fn a_name_is_short_and_displays_as_itself() {
        assert!(["devbox", "u@devbox", "docker:box", "büro 1"].into_iter().all(is_valid_name));
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        assert!(!["", " a", "a\nb", "a\u{202e}b", "a  b", &long].into_iter().any(is_valid_name));
    }
}
