//! Messages of both sides, for the targets that hold a conversation.

use serde_json::json;
use serde_json::value::RawValue;

/// Returns the text if it is an object that differs from the targets' own objects; otherwise wraps it in one.
pub fn object(text: &str) -> String {
    let text = text.trim();
    let is_object =
        text.starts_with('{') && !text.contains("umber") && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_object { text.to_owned() } else { json!({ "text": text }).to_string() }
}

pub fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Replaces line breaks between tokens with spaces.
pub fn flat(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Does the same for bytes.
pub fn line_of(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect()
}

/// Asserts that every reader sees a single line.
pub fn one(line: &[u8]) {
    assert!(line.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() == 1 && line.ends_with(b"\n"));
}

pub fn pick(from: &[&'static str], at: u8) -> &'static str {
    from[usize::from(at) % from.len()]
}
