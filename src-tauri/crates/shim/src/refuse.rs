//! When there is no session: tell the client, in its own protocol, what a person can do.

use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

/// The longest first request that is looked at.
const MAX_LINE: u64 = 1024 * 1024;

/// JSON-RPC 2.0, section 5.1: -32000 to -32099 are for the implementation's own errors.
const UNAVAILABLE: i32 = -32000;

/// Answers the client's first request with the problem, and says it on standard error as well.
pub fn answer_first_request(problem: &str) -> ExitCode {
    // Clients show standard error in their logs; nobody is left to tell if that fails too.
    let _ = writeln!(io::stderr(), "ironcurtain-shim: {problem}");
    let mut input = io::stdin().lock();
    while let Some(line) = next_line(&mut input) {
        if let Some(id) = request_id(&line) {
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{}", error(&id, problem)).and_then(|()| out.flush());
            break;
        }
    }
    ExitCode::FAILURE
}

/// Answers a call whose question died with the daemon. A broken pipe means that the client is gone too.
pub fn answer_asked(request: &str) {
    let Ok(id) = serde_json::from_str(request) else { return };
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", not_answered(&id)).and_then(|()| out.flush());
}

fn not_answered(id: &Value) -> Value {
    let text =
        "DENIED: IronCurtain ended before the user answered. The same call can be tried again when it runs.";
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content, "isError": true } })
}

fn next_line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = input.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    (read > 0).then_some(line)
}

fn request_id(line: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(line).ok()?;
    message.get("method")?;
    message.get("id").cloned()
}

fn error(id: &Value, problem: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": UNAVAILABLE, "message": format!("IronCurtain: {problem}") } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_is_answered() {
        assert_eq!(request_id(br#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#), Some(json!("a")));
        assert_eq!(request_id(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(request_id(b"not json"), None);
    }

    #[test]
    fn the_error_names_the_product_and_the_problem() {
        let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32000, "message": "IronCurtain: it is not running" } });
        assert_eq!(error(&json!(7), "it is not running"), expected);
    }
}
