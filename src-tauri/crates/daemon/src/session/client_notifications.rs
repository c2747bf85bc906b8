//! Reduces the client's notifications to the fields that MCP defines.

use ironcurtain_mcp::wire::{Fields, Id};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Maximum length of a progress token or task id, in bytes of JSON.
const MAX_LEN: usize = 128;

/// Task states that MCP defines.
const STATES: [&str; 5] = ["working", "input_required", "completed", "failed", "cancelled"];

/// Returns only the parameters that MCP defines for a notification: tokens, ids, numbers and states, but no free
/// text.
pub(super) fn allowed_params(method: &str, params: Option<&RawValue>) -> Option<Box<RawValue>> {
    let fields: Fields = serde_json::from_str(params?.get()).ok()?;
    let mut known = Fields::default();
    for (name, value) in fields.iter() {
        let fits = match (method, name) {
            ("notifications/progress", "progressToken") | ("notifications/tasks/status", "taskId") => {
                value.get().len() <= MAX_LEN && Id::try_from(value).is_ok()
            }
            ("notifications/progress", "progress" | "total")
            | ("notifications/tasks/status", "ttl" | "pollInterval") => is_number(value),
            ("notifications/tasks/status", "status") => {
                STATES.iter().any(|state| value.get() == format!("\"{state}\""))
            }
            ("notifications/tasks/status", "createdAt" | "lastUpdatedAt") => is_time(value),
            (_, _) => false,
        };
        if fits {
            known.set(name, value.to_owned());
        }
    }
    to_raw_value(&known).ok()
}

fn is_number(value: &RawValue) -> bool {
    value.get().len() <= MAX_LEN && matches!(serde_json::from_str(value.get()), Ok(Value::Number(_)))
}

/// Returns `true` if the value contains only characters that can occur in an RFC 3339 timestamp.
fn is_time(value: &RawValue) -> bool {
    let text = value.get().trim_matches('"');
    text.len() <= 35 && text.bytes().all(|b| b.is_ascii_digit() || b"-:.+TZ".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_carry_no_client_text() {
        let known = |method: &str, params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            allowed_params(method, Some(&params)).unwrap().get().to_owned()
        };
        let progress =
            r#"{"progressToken":"p","progress":1,"total":2,"message":"a secret","_meta":{"x":"a secret"}}"#;
        assert_eq!(
            known("notifications/progress", progress),
            r#"{"progressToken":"p","progress":1,"total":2}"#
        );
        let status = r#"{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","statusMessage":"a secret"}"#;
        assert_eq!(
            known("notifications/tasks/status", status),
            r#"{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z"}"#
        );
        assert_eq!(known("notifications/tasks/status", r#"{"status":"a secret"}"#), "{}");
    }
}
