//! What must not stand in a log: values of arguments whose name says they are secret, private keys, and the
//! bulk of long texts.

use serde_json::{Map, Value};

/// The longest text kept; a log is for finding out what happened, not for keeping content.
const LONGEST: usize = 2048;

/// Words in an argument's name that make its value a secret.
const SECRET_NAMES: [&str; 8] =
    ["password", "passwd", "secret", "token", "apikey", "api_key", "authorization", "credential"];

/// Beginnings of well-known tokens, as their issuers document them.
const SECRET_PREFIXES: [&str; 11] =
    ["ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "AKIA", "eyJhbGciOi"];

/// How a mark begins that stands for something else.
const MARKS: [&str; 2] = ["[redacted: ", "[cut: "];

/// Whether a value on record may stand for another one.
#[must_use]
pub fn is_marked(value: &Value) -> bool {
    match value {
        Value::String(text) => MARKS.iter().any(|mark| text.contains(mark)),
        Value::Array(items) => items.iter().any(is_marked),
        Value::Object(fields) => fields.values().any(is_marked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The arguments with secrets replaced and long texts cut, each with a mark that says so.
#[must_use]
pub fn redacted(arguments: &Map<String, Value>) -> Map<String, Value> {
    arguments.iter().map(|(name, value)| (name.clone(), redact(name, value))).collect()
}

fn redact(name: &str, value: &Value) -> Value {
    let lower = name.to_lowercase();
    if SECRET_NAMES.iter().any(|s| lower.contains(s)) && !value.is_null() {
        return Value::from("[redacted: named as a secret]");
    }
    match value {
        Value::String(text) => Value::from(redact_text(text)),
        Value::Array(items) => items.iter().map(|item| redact(name, item)).collect(),
        Value::Object(fields) => Value::Object(redacted(fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn redact_text(text: &str) -> String {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return "[redacted: a private key]".to_owned();
    }
    let hides =
        |word: &str| SECRET_PREFIXES.iter().any(|p| word.starts_with(p) && word.len() >= p.len() + 12);
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | ':' | '(' | ')');
    let mut kept = String::with_capacity(text.len().min(LONGEST));
    for piece in text.split_inclusive(is_edge) {
        if kept.len() + piece.len() > LONGEST {
            let rest = text.len().saturating_sub(kept.len());
            kept.push_str(&format!("[cut: {rest} bytes more]"));
            break;
        }
        kept.push_str(if hides(piece) { "[redacted: a token] " } else { piece });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let arguments = json!({
            "path": "/home/u/a.txt", "api_key": "abc", "n": 3,
            "content": "GITHUB=ghp_0123456789abcdefghij next",
            "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nxyz",
            "nested": { "password": ["x"], "ok": [true, "fine"] },
        });
        let expected = json!({
            "path": "/home/u/a.txt", "api_key": "[redacted: named as a secret]", "n": 3,
            "content": "GITHUB=[redacted: a token] next",
            "key": "[redacted: a private key]",
            "nested": { "password": "[redacted: named as a secret]", "ok": [true, "fine"] },
        });
        let kept = redacted(arguments.as_object().unwrap());
        let marked: Vec<&str> =
            kept.iter().filter(|(_, value)| is_marked(value)).map(|(name, _)| name.as_str()).collect();
        assert_eq!(marked, ["api_key", "content", "key", "nested"]);
        assert_eq!(Value::Object(kept), expected);
    }

    #[test]
    fn long_texts_are_cut_with_a_mark() {
        let long = json!({ "content": "word ".repeat(1000) });
        let got = redacted(long.as_object().unwrap());
        let text = got.get("content").and_then(Value::as_str).unwrap();
        assert!(text.len() < LONGEST + 40 && text.ends_with(" bytes more]"), "{}", text.len());
        assert!(is_marked(&Value::from(text)));
    }
}
