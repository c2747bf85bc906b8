//! Replaces secrets in server output.
//!
//! - A secret is also found if it is percent-encoded, JSON-escaped, or in base64 at any offset.
//! - Secrets shorter than [`MIN_LEN`] are not replaced, because they would match parts of ordinary words.

use super::Secret;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::engine::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Minimum length in bytes of a secret that is masked.
const MIN_LEN: usize = 6;

/// Text that replaces a secret.
const MASK: &[u8] = b"[secret]";

/// Replaces a set of secrets in text. Clones share the search patterns.
#[derive(Clone, Default)]
pub struct SecretMask(Option<Arc<Patterns>>);

struct Patterns {
    search: AhoCorasick,
    max_len: usize,
}

impl SecretMask {
    /// Creates a mask for these secrets.
    #[must_use]
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut encodings = BTreeSet::new();
        for secret in secrets {
            // Programs may print a multi-line key one line at a time.
            for value in std::iter::once(secret.reveal()).chain(secret.reveal().lines()) {
                if value.len() >= MIN_LEN {
                    encodings.extend(encodings_of(value.as_bytes()));
                }
            }
        }
        let max_len = encodings.iter().map(Vec::len).max();
        // Building fails only for far more text than a server's settings can contain.
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&encodings);
        Self(max_len.zip(search.ok()).map(|(max_len, search)| Arc::new(Patterns { search, max_len })))
    }

    /// Returns the text with all secrets replaced.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.0 {
            Some(patterns) if patterns.search.is_match(text) => {
                let mut masked = Vec::with_capacity(text.len());
                patterns.search.replace_all_with_bytes(text, &mut masked, |_, _, masked| {
                    masked.extend_from_slice(MASK);
                    true
                });
                Cow::Owned(masked)
            }
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// Returns the maximum number of bytes at the end of a text that can be the start of a secret. The secret may
    /// continue in the next text.
    #[must_use]
    pub fn overlap(&self) -> usize {
        self.0.as_ref().map_or(0, |patterns| patterns.max_len - 1)
    }
}

impl fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretMask")
    }
}

/// Returns the encodings of a secret to search for.
fn encodings_of(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let text = String::from_utf8_lossy(value);
    let json = serde_json::to_string(&text).unwrap_or_default();
    let json = json.trim_matches('"').as_bytes().to_vec();
    let plain = [value.to_vec(), json, percent_encoded(value, true), percent_encoded(value, false)];
    plain.into_iter().chain((0..3).flat_map(|offset| base64_of(value, offset)))
}

/// Percent-encodes all bytes except unreserved characters (RFC 3986, section 2.3), with upper- or lower-case
/// digits.
fn percent_encoded(value: &[u8], upper: bool) -> Vec<u8> {
    let mut encoded = Vec::new();
    for &byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte),
            _ if upper => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => encoded.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    encoded
}

/// Encodes a value as base64, in both alphabets, as if it started `offset` bytes into a group of three bytes. Omits
/// characters that also contain bits of neighbouring bytes.
fn base64_of(value: &[u8], offset: usize) -> [Vec<u8>; 2] {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(value.iter().copied()).collect();
    let inner = (offset * 8).div_ceil(6)..padded.len() * 8 / 6;
    let encode = |encoded: String| encoded.as_bytes().get(inner.clone()).unwrap_or_default().to_vec();
    [encode(STANDARD_NO_PAD.encode(&padded)), encode(URL_SAFE_NO_PAD.encode(&padded))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    fn masked(secret: &str, text: &str) -> String {
        let mask = SecretMask::of([&Secret::new(secret.to_owned())]);
        String::from_utf8(mask.apply(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn a_secret_is_replaced_however_it_is_written() {
        let secret = "s3cr&t/Tök\"en";
        assert_eq!(masked(secret, &format!("key={secret};")), "key=[secret];");
        assert_eq!(masked(secret, "s3cr%26t%2FT%C3%B6k%22en"), "[secret]");
        assert_eq!(masked(secret, "s3cr%26t%2ft%C3%B6k%22en"), "s3cr%26t%2ft%C3%B6k%22en", "another one");
        assert_eq!(masked(secret, "s3cr%26t%2fT%c3%b6k%22en"), "[secret]");
        assert_eq!(masked(secret, r#"{"key":"s3cr&t/Tök\"en"}"#), r#"{"key":"[secret]"}"#);
        for before in ["", "u", "us", "use", "user:"] {
            let encoded = STANDARD.encode(format!("{before}{secret}:after"));
            let masked = masked(secret, &encoded);
            assert!(masked.contains("[secret]"), "{before}: {encoded} became {masked}");
            let left = STANDARD.encode(secret);
            assert!(!masked.contains(&left[2..left.len() - 4]), "{before}: {masked}");
        }
    }

    #[test]
    fn each_line_of_a_key_is_replaced() {
        assert_eq!(masked("first line\nsecond line", "second line was wrong"), "[secret] was wrong");
    }

    #[test]
    fn other_text_passes_and_a_short_value_is_no_secret() {
        assert_eq!(masked("s3cret-value", "nothing of it: s3cret"), "nothing of it: s3cret");
        assert_eq!(masked("no", "nothing"), "nothing");
        assert_eq!(SecretMask::default().apply(b"x"), b"x".as_slice());
        assert_eq!(format!("{:?}", SecretMask::default()), "SecretMask");
    }
}
