//! Creates annotations and lists for the existing system's recorded calls. That system checks neither argument names
//! and types nor that lists are defined.

use serde_json::{Map, Value, json};

/// Annotates one tool so that it accepts all arguments of a call. Unlisted arguments get no role.
pub fn taking(annotations: &Value, server: &str, tool: &str, arguments: &Map<String, Value>) -> Value {
    let tools = annotations.get("servers").and_then(|servers| servers.get(server)?.get("tools")?.as_array());
    let named = tools.into_iter().flatten().find(|known| known.get("toolName") == Some(&json!(tool)));
    let taking = named.map(|known| {
        let mut args = known.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
        for name in arguments.keys() {
            args.entry(name.clone()).or_insert_with(|| json!([]));
        }
        let mut taking = known.as_object().cloned().unwrap_or_default();
        taking.extend([("inputSchema".to_owned(), Value::Null), ("args".to_owned(), args.into())]);
        Value::Object(taking)
    });
    json!({ "servers": { server: { "tools": taking.into_iter().collect::<Vec<Value>>() } } })
}

/// Returns the lists of a case, plus an empty list for every other list that a policy names.
pub fn with_empty_lists(policy: &Value, lists: Option<Value>) -> Value {
    let mut file = lists.unwrap_or_else(|| json!({ "lists": {} }));
    let mut names = Vec::new();
    collect_names(policy, &mut names);
    if let Some(lists) = file.get_mut("lists").and_then(Value::as_object_mut) {
        for name in names {
            lists.entry(name).or_insert_with(|| json!({ "values": [] }));
        }
    }
    file
}

/// Collects the names of the lists in `allowed` fields.
fn collect_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let allowed = fields.get("allowed").and_then(Value::as_array).into_iter().flatten();
            let named = allowed.filter_map(|entry| entry.as_str()?.strip_prefix('@'));
            names.extend(named.map(str::to_owned));
            fields.values().for_each(|value| collect_names(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
