//! Answers a client that has no session with a JSON-RPC error that tells the user how to fix the problem.
//!
//! - Answers every request until the client closes the connection. Some clients display the error for
//!   `server/discover`, others display the error for `initialize`. If the server exited immediately, they would
//!   display only "connection closed".

use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

/// Maximum length of a request line in bytes.
const MAX_LINE: u64 = 1024 * 1024;

/// Error code. JSON-RPC 2.0, section 5.1, reserves -32000 to -32099 for implementation-defined errors.
const UNAVAILABLE: i32 = -32000;

/// Writes `problem` to standard error, then answers every request with this error until the client closes the
/// connection.
pub fn answer_requests(problem: &str) -> ExitCode {
    // Clients show standard error in their logs. A write error could not be reported anywhere.
    let _ = writeln!(io::stderr(), "ironcurtain-shim: {problem}");
    let mut input = io::stdin().lock();
    while let Some(line) = next_line(&mut input) {
        for id in request_ids(&line) {
            let mut out = io::stdout().lock();
            if writeln!(out, "{}", error(&id, problem)).and_then(|()| out.flush()).is_err() {
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::FAILURE
}

/// Answers a call that was waiting for the user when the daemon exited. Ignores a broken pipe, which means that the
/// client has exited too.
pub fn answer_pending_question(request: &str) {
    let Ok(id) = serde_json::from_str(request) else { return };
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", denied_result(&id)).and_then(|()| out.flush());
}

fn denied_result(id: &Value) -> Value {
    let text = "DENIED: IronCurtain exited before the user answered. You can retry this call once IronCurtain is running again.";
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content, "isError": true } })
}

fn next_line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = input.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    (read > 0).then_some(line)
}

/// Returns the ids of the requests in a line, which may be a batch.
fn request_ids(line: &[u8]) -> Vec<Value> {
    let messages = match serde_json::from_slice(line) {
        Ok(Value::Array(batch)) => batch,
        Ok(message) => vec![message],
        Err(_) => Vec::new(),
    };
    messages.iter().filter(|m| m.get("method").is_some()).filter_map(|m| m.get("id").cloned()).collect()
}

fn error(id: &Value, problem: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": UNAVAILABLE, "message": format!("IronCurtain: {problem}") } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_are_answered() {
        let initialize = r#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(request_ids(initialize.as_bytes()), [json!("a")]);
        assert_eq!(request_ids(format!("[{initialized},{initialize}]").as_bytes()), [json!("a")]);
        for other in [initialized, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "not json"] {
            assert!(request_ids(other.as_bytes()).is_empty(), "{other}");
        }
    }

    #[test]
    fn error_names_the_product_and_the_problem() {
        let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32000, "message": "IronCurtain: it is not running" } });
        assert_eq!(error(&json!(7), "it is not running"), expected);
    }
}
