//! Translates paths of agents in a container, where the other implementation mounts the session sandbox at another path.
//! IronCurtain mounts no session sandbox in containers, so only this oracle needs the translation.

use crate::text;
use anyhow::Context;
use serde_json::{Value, json};

/// Translates a container path to a host path.
pub fn on_host(raw: &str, container: &str, host: &str) -> String {
    let container = without_slash(container);
    if without_slash(raw) == container {
        return host.to_owned();
    }
    match raw.strip_prefix(container).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => format!("{host}/{rest}"),
        None => raw.to_owned(),
    }
}

/// Translates the host paths in a result to container paths.
pub fn rewrite_result(request: &Value) -> anyhow::Result<Value> {
    let mut content = request.get("content").context("`content` is missing")?.clone();
    let host = without_slash(text(request, "hostDir")?);
    let container = text(request, "containerDir")?;
    let blocks = content.as_array_mut().into_iter().flatten().filter(|_| !host.is_empty());
    for block in blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("text")) {
        if let Some(Value::String(said)) = block.get_mut("text") {
            *said = said.replace(host, container);
        }
    }
    Ok(json!({ "value": content }))
}

/// Removes a trailing slash, except from the root.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path)
}
