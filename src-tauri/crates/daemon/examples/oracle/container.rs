//! Translates paths for agents in a container, where the other implementation mounts the session folder at a different
//! path. IronCurtain does not use containers, so only this oracle needs the translation.

use crate::text;
use anyhow::Context;
use serde_json::{Value, json};

/// Translates a path in the container to a path on the host.
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

/// Translates host paths in a tool result to paths in the container.
pub fn rewrite_result(request: &Value) -> anyhow::Result<Value> {
    let mut content = request.get("content").context("`content` is missing")?.clone();
    let host = without_slash(text(request, "hostDir")?);
    let container = text(request, "containerDir")?;
    let blocks = content.as_array_mut().into_iter().flatten().filter(|_| !host.is_empty());
    for block in blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("text")) {
        if let Some(Value::String(output)) = block.get_mut("text") {
            *output = output.replace(host, container);
        }
    }
    Ok(json!({ "value": content }))
}

/// Removes a trailing slash, except from `/`.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path)
}
