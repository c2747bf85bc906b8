//! Words of both sides of a conversation, for the targets that hold one.

use serde_json::json;
use serde_json::value::RawValue;

/// This text, if it is an object that the targets can tell from their own; else it is put into one.
pub fn object(text: &str) -> String {
    let text = text.trim();
    let is_object =
        text.starts_with('{') && !text.contains("umber") && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_object { text.to_owned() } else { json!({ "text": text }).to_string() }
}

pub fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A line end between tokens is a space.
pub fn flat(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The same of bytes.
pub fn line_of(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect()
}

/// A line that is sent is one for every reader.
pub fn one(line: &[u8]) {
    assert!(line.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() == 1 && line.ends_with(b"\n"));
}

pub fn pick(from: &[&'static str], at: u8) -> &'static str {
    from[usize::from(at) % from.len()]
}
