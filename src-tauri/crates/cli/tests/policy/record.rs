//! Writes audit logs in the trusted process's format.

use crate::home::Home;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

pub(crate) const LOG: &str = "ic/state/audit/audit.jsonl";

/// Time of the first entry. Each subsequent entry is one second newer.
const BEGAN_MS: u64 = 1_700_000_000_000;

/// Returns the log entry of a decided call. `on` is the server and the tool, `output_text` the decision and the rule.
pub(crate) fn call(on: [&str; 2], arguments: &Value, paths: &[&str], output_text: [&str; 2]) -> Value {
    json!({
        "event": "decision", "summary": "decided", "session": "s1", "client": "claude",
        "serverName": on[0], "toolName": on[1], "arguments": arguments, "paths": paths,
        "policyDecision": { "status": output_text[0], "rule": output_text[1], "reason": "then" },
    })
}

/// Writes the entries as an audit log with a valid hash chain.
pub(crate) fn write(home: &Home, entries: &[Value]) {
    let (mut log, mut prev) = (String::new(), "0".repeat(64));
    for (seq, entry) in (1..).zip(entries) {
        let time = BEGAN_MS + (seq - 1) * 1_000;
        let placed = json!({ "seq": seq, "timestamp": time, "requestId": seq.to_string(), "prev": prev });
        let mut entry = entry.clone();
        entry.as_object_mut().unwrap().extend(placed.as_object().unwrap().clone());
        let text = entry.to_string();
        let open = text.strip_suffix('}').unwrap();
        prev = String::new();
        Sha256::digest(open).iter().for_each(|byte| write!(prev, "{byte:02x}").unwrap());
        writeln!(log, "{open},\"hash\":\"{prev}\"}}").unwrap();
    }
    let path = home.path(LOG);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, log).unwrap();
}
