//! Answers requests, one line at a time.
//!
//! - An invalid line does not affect other lines. An empty line is skipped, and a line that is not JSON is answered
//!   with an error.

use serde_json::{Value, json};

/// Returns the answer to a line, with the request's id. The id is `null` if the line is not JSON.
pub fn answer_line(line: &[u8], answer: impl FnOnce(&Value) -> anyhow::Result<Value>) -> Option<Value> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let (id, answer) = match serde_json::from_slice::<Value>(line) {
        Ok(request) => (request.get("id").cloned().unwrap_or_default(), answer(&request)),
        Err(problem) => (Value::Null, Err(anyhow::Error::new(problem).context("the line is not JSON"))),
    };
    let mut answer = answer.unwrap_or_else(|problem| json!({ "error": format!("{problem:#}") }));
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("id".to_owned(), id);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_is_skipped_and_a_bad_one_gets_an_error() {
        let output = |line: &[u8]| answer_line(line, |request| Ok(json!({ "value": request["op"] })));
        assert_eq!(output(b"{\"id\":1,\"op\":\"x\"}\r"), Some(json!({ "id": 1, "value": "x" })));
        assert_eq!((output(b""), output(b" \r")), (None, None));
        for bad in [&b"{"[..], b"no", b"\xff", b"{} {}"] {
            let answer = output(bad).unwrap();
            assert_eq!(answer["id"], json!(null));
            assert!(answer["error"].as_str().unwrap().starts_with("the line is not JSON: "), "{answer}");
        }
        let odd = answer_line(b"[]", |_| anyhow::bail!("`op` is missing"));
        assert_eq!(odd, Some(json!({ "id": null, "error": "`op` is missing" })));
    }
}
