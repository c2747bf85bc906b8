//! SHA-256 digests in the form that OCI registries use.

use ring::digest::{SHA256, digest};

/// SHA-256 digest in the form `sha256:HEX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sha256Digest(String);

impl Sha256Digest {
    pub(crate) fn compute(bytes: &[u8]) -> Self {
        let hex: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("sha256:{hex}"))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (hex.len() == 64 && hex.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
