//! Form in which paths are exported.

use ring::{digest, hmac};
use std::fmt;

/// Length of a hash, in bytes. Collisions are negligible at this length.
const HASH_LEN: usize = 16;

/// Key that hashes paths. It never leaves the machine, so a collector cannot verify guessed paths by hashing them.
#[derive(Clone)]
pub struct PathKey(hmac::Key);

impl PathKey {
    /// Derives the key from a secret.
    #[must_use]
    pub fn derive(secret: &[u8]) -> Self {
        let mut text = b"ironcurtain path key\n".to_vec();
        text.extend_from_slice(secret);
        let key = digest::digest(&digest::SHA256, &text);
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathKey")
    }
}

/// Form in which paths are exported.
#[derive(Debug, Clone)]
pub enum PathForm {
    /// As recorded.
    Full,
    /// As keyed hashes. The same path always has the same hash.
    Hashed(PathKey),
    /// Omitted.
    Omitted,
}

impl PathForm {
    /// Returns the path in this form, or `None` if it is omitted.
    #[must_use]
    pub fn format(&self, path: &str) -> Option<String> {
        match self {
            Self::Full => Some(ironcurtain_audit::redacted_text(path)),
            Self::Hashed(key) => {
                let tag = hmac::sign(&key.0, path.as_bytes());
                let hex: String =
                    tag.as_ref().iter().take(HASH_LEN).map(|byte| format!("{byte:02x}")).collect();
                Some(format!("hmac-sha256:{hex}"))
            }
            Self::Omitted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_path_and_key_and_reveals_neither() {
        let form = |secret: &[u8]| PathForm::Hashed(PathKey::derive(secret));
        let hash = |secret: &[u8], path: &str| form(secret).format(path).unwrap();
        assert_eq!(hash(b"k", "/home/u/a"), hash(b"k", "/home/u/a"));
        assert_ne!(hash(b"k", "/home/u/a"), hash(b"k", "/home/u/b"));
        assert_ne!(hash(b"k", "/home/u/a"), hash(b"l", "/home/u/a"));
        assert!(hash(b"k", "/home/u/a").starts_with("hmac-sha256:"));
        assert_eq!(hash(b"k", "/home/u/a").len(), "hmac-sha256:".len() + 2 * HASH_LEN);
        assert_eq!(PathForm::Full.format("/a").as_deref(), Some("/a"));
        assert_eq!(PathForm::Omitted.format("/a"), None);
        assert_eq!(format!("{:?}", form(b"k")), "Hashed(PathKey)");
    }
}
