//! Converts the core's responses for a stateless client.

use crate::wire::{Id, LineGuard, Outgoing, Response, error_line, meta_key, response_parts};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Methods with caching hints in their results.
const CACHED: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// Protocol fields of a result.
#[derive(Debug, Default)]
struct ResultFields {
    result_type: Option<Value>,
    has_meta: bool,
    has_lifetime: bool,
    has_scope: bool,
}

impl<'de> Deserialize<'de> for ResultFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = ResultFields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResultFields, A::Error> {
                let mut fields = ResultFields::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    // Case variants and duplicates make the type invalid, because some parsers ignore case and use the
                    // last of several fields.
                    if name.eq_ignore_ascii_case("resultType")
                        || name.eq_ignore_ascii_case("re\u{17f}ultType")
                    {
                        let value = map.next_value()?;
                        let is_first = fields.result_type.is_none() && name == "resultType";
                        fields.result_type = Some(if is_first { value } else { Value::Null });
                        continue;
                    }
                    fields.has_meta |= name == "_meta";
                    fields.has_lifetime |= name == "ttlMs";
                    fields.has_scope |= name == "cacheScope";
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Answers a client request with the core's response.
pub(super) fn translate(
    (id, method): (&Id, &str),
    response: Response,
    guard: LineGuard,
    server_info: Option<&RawValue>,
) -> Outgoing {
    let result = match response {
        Response::Error(_) => return response_parts(id, response).with_guard(guard),
        Response::Result(result) => result,
    };
    let fields = match serde_json::from_str::<ResultFields>(result.get()) {
        Ok(fields) => fields,
        Err(problem) => return invalid_result(id, &format!("the server's result is invalid: {problem}")),
    };
    match &fields.result_type {
        None => {}
        Some(Value::String(kind)) if kind == "complete" => {}
        Some(_) => return invalid_result(id, "the server's result has an unsupported type"),
    }
    let mut added = String::new();
    if fields.result_type.is_none() {
        added.push_str("\"resultType\":\"complete\",");
    }
    if CACHED.contains(&method) {
        if !fields.has_lifetime {
            added.push_str("\"ttlMs\":0,");
        }
        if !fields.has_scope {
            added.push_str("\"cacheScope\":\"private\",");
        }
    }
    if let Some(info) = server_info.filter(|_| !fields.has_meta) {
        added.push_str(&format!("\"_meta\":{{\"{}\":{}}},", meta_key::SERVER_INFO, info.get()));
    }
    let added = added.replace(['\n', '\r'], " ");
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", id.as_json());
    Outgoing::with_body_fields(head.into_bytes(), &added, result, b"}\n").with_guard(guard)
}

fn invalid_result(id: &Id, text: &str) -> Outgoing {
    Outgoing::line(error_line(Some(id), -32603, text))
}
