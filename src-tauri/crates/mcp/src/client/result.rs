//! Converts the core's responses for a stateless client.

use crate::wire::{Held, Id, Outgoing, Response, error_line, meta_key, response_parts};
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
struct Glance {
    result_type: Option<Value>,
    has_meta: bool,
    has_lifetime: bool,
    has_scope: bool,
}

impl<'de> Deserialize<'de> for Glance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Glance;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Glance, A::Error> {
                let mut glance = Glance::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    // Case variants and duplicates make the type invalid, because some parsers ignore case and use the
                    // last of several fields.
                    if name.eq_ignore_ascii_case("resultType")
                        || name.eq_ignore_ascii_case("re\u{17f}ultType")
                    {
                        let value = map.next_value()?;
                        let is_first = glance.result_type.is_none() && name == "resultType";
                        glance.result_type = Some(if is_first { value } else { Value::Null });
                        continue;
                    }
                    glance.has_meta |= name == "_meta";
                    glance.has_lifetime |= name == "ttlMs";
                    glance.has_scope |= name == "cacheScope";
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(glance)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Answers a client request with the core's response.
pub(super) fn answer(
    (id, method): (&Id, &str),
    response: Response,
    held: Held,
    server_info: Option<&RawValue>,
) -> Outgoing {
    let result = match response {
        Response::Error(_) => return response_parts(id, response).holding_what(held),
        Response::Result(result) => result,
    };
    let glance = match serde_json::from_str::<Glance>(result.get()) {
        Ok(glance) => glance,
        Err(problem) => return not_taken(id, &format!("the server's result is invalid: {problem}")),
    };
    match &glance.result_type {
        None => {}
        Some(Value::String(kind)) if kind == "complete" => {}
        Some(_) => return not_taken(id, "the server's result has an unsupported type"),
    }
    let mut fields = String::new();
    if glance.result_type.is_none() {
        fields.push_str("\"resultType\":\"complete\",");
    }
    if CACHED.contains(&method) {
        if !glance.has_lifetime {
            fields.push_str("\"ttlMs\":0,");
        }
        if !glance.has_scope {
            fields.push_str("\"cacheScope\":\"private\",");
        }
    }
    if let Some(info) = server_info.filter(|_| !glance.has_meta) {
        fields.push_str(&format!("\"_meta\":{{\"{}\":{}}},", meta_key::SERVER_INFO, info.get()));
    }
    let fields = fields.replace(['\n', '\r'], " ");
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", id.as_json());
    Outgoing::around_with(head.into_bytes(), &fields, result, b"}\n").holding_what(held)
}

fn not_taken(id: &Id, text: &str) -> Outgoing {
    Outgoing::line(error_line(Some(id), -32603, text))
}
