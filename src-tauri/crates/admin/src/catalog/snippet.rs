//! Parses JSON snippets of client settings from documentation. Pure.

use super::addition_error::AdditionError;
use super::untrusted_entry::is_remote;
use serde_json::{Map, Value};

/// Keys under which agent clients store servers in their settings.
const WRAPPERS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp"];

/// Returns the servers in a snippet of client settings, keyed by name.
///
/// Accepts the usual forms in documentation: Markdown fences, comments, trailing commas, missing outer braces and the
/// wrapper keys of agent clients.
///
/// # Errors
/// Returns [`AdditionError::NotJson`] if the snippet is not a JSON object.
pub(super) fn servers_in(text: &str, name: Option<&str>) -> Result<Map<String, Value>, AdditionError> {
    let text = without_fence(text);
    let braced;
    let text = if text.starts_with('"') {
        braced = format!("{{{text}}}");
        &braced
    } else {
        text
    };
    let mut top: Map<String, Value> = serde_json::from_str(text).or_else(|strict| {
        let root = jsonc_parser::cst::CstRootNode::parse(text, &lenient()).ok();
        let value = root.and_then(|root| root.to_serde_value());
        value.and_then(|value| serde_json::from_value(value).ok()).ok_or(AdditionError::NotJson(strict))
    })?;
    while let Some(inner) = WRAPPERS.iter().find_map(|key| top.get(*key)?.as_object()) {
        top = inner.clone();
    }
    if top.get("command").is_some_and(Value::is_string) || is_remote(&top) {
        let name = name.unwrap_or("server").to_owned();
        return Ok(Map::from_iter([(name, Value::Object(top))]));
    }
    Ok(top)
}

fn lenient() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Removes surrounding whitespace and a Markdown code fence.
pub(super) fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("```") else { return text };
    let body = rest.split_once('\n').map_or(rest, |(_, body)| body);
    body.trim_end().strip_suffix("```").unwrap_or(body).trim()
}
