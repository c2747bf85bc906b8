//! Hashes files the way OPA does.
//!
//! - JSON documents are hashed in a canonical form: without whitespace, with sorted keys, and with numbers as written.
//!   Other files are hashed byte for byte.

use ring::digest::{self, Digest};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum nesting depth of a JSON document.
const MAX_DEPTH: usize = 64;

/// Supported hash algorithms. OPA's broken and rarely used algorithms are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
pub(crate) enum HashAlgorithm {
    #[serde(rename = "SHA-256")]
    Sha256,
    #[serde(rename = "SHA-384")]
    Sha384,
    #[serde(rename = "SHA-512")]
    Sha512,
}

/// Error returned for a JSON document that is invalid or nested too deeply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleDocumentError {
    #[error("it is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is nested more than {} levels deep", MAX_DEPTH)]
    TooDeep,
}

impl HashAlgorithm {
    /// Returns a file's hash in lowercase hexadecimal.
    pub(crate) fn hash(self, name: &str, bytes: &[u8]) -> Result<String, BundleDocumentError> {
        let digest =
            if is_structured(name) { self.digest(canonical(bytes)?.as_bytes()) } else { self.digest(bytes) };
        Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn digest(self, bytes: &[u8]) -> Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }
}

/// Returns `true` if OPA hashes this file in its canonical form.
fn is_structured(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    matches!(base, "data.json" | ".manifest")
}

/// Returns a JSON document in its canonical form.
fn canonical(bytes: &[u8]) -> Result<String, BundleDocumentError> {
    let document: &RawValue = serde_json::from_slice(bytes)?;
    let mut out = String::with_capacity(bytes.len());
    append(document, MAX_DEPTH, &mut out)?;
    Ok(out)
}

fn append(value: &RawValue, depth: usize, out: &mut String) -> Result<(), BundleDocumentError> {
    let text = value.get();
    if !text.starts_with(['{', '[', '"']) {
        // Numbers, `true`, `false` and `null` are copied verbatim.
        out.push_str(text);
        return Ok(());
    }
    if text.starts_with('"') {
        append_text(&serde_json::from_str::<String>(text)?, out);
        return Ok(());
    }
    let inner = depth.checked_sub(1).ok_or(BundleDocumentError::TooDeep)?;
    if text.starts_with('{') {
        // Go sorts keys bytewise, and uses the last of several equal keys.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
        out.push('{');
        for (at, (key, value)) in fields.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            append_text(&key, out);
            out.push(':');
            append(value, inner, out)?;
        }
        out.push('}');
    } else {
        let items: Vec<&RawValue> = serde_json::from_str(text)?;
        out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            append(item, inner, out)?;
        }
        out.push(']');
    }
    Ok(())
}

/// Appends a string as Go's JSON encoder writes it, which also escapes U+2028 and U+2029.
fn append_text(text: &str, out: &mut String) {
    let quoted = serde_json::Value::from(text).to_string();
    out.push_str(&quoted.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_text(text: &str) -> String {
        canonical(text.as_bytes()).map_err(|e| e.to_string()).unwrap()
    }

    #[test]
    fn documents_are_hashed_by_structure() {
        assert_eq!(
            canonical_text(r#" { "b" : [ 1 , 2.50e1, -0 ], "a": { } } "#),
            r#"{"a":{},"b":[1,2.50e1,-0]}"#
        );
        assert_eq!(canonical_text(r#"{"x":1,"x":2}"#), r#"{"x":2}"#);
        assert_eq!(canonical_text(r#""<\u00e9\/\u2028\u001f\u007f>""#), "\"<é/\\u2028\\u001f\u{7f}>\"");
        assert_eq!(canonical_text("123.45678911111111111111111111111"), "123.45678911111111111111111111111");
    }

    /// The documents and the hash are from OPA's tests.
    #[test]
    fn hashes_equal_those_of_opa() {
        let numbers = "60f7b5dc86ded48785436192a08dbfd04894d7f1b417c4f8d3714679a7f78cb3c833f16a8559a1cf1f32968747dc1d95ef34826263dacf125ded8f5c374be4c0";
        assert_eq!(HashAlgorithm::Sha512.hash("a/b/c/data.json", b" [1, 2,3]\n").unwrap(), numbers);
        // OPA's test expects an MD5 hash of this text. MD5 is not supported here.
        assert_eq!(canonical_text(r#"{"revision": "quickbrownfaux"}"#), r#"{"revision":"quickbrownfaux"}"#);
    }

    #[test]
    fn deeply_nested_documents_are_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(canonical_text(&nested(MAX_DEPTH)), nested(MAX_DEPTH));
        for depth in [MAX_DEPTH + 1, 100_000] {
            canonical(nested(depth).as_bytes()).unwrap_err();
        }
    }
}
