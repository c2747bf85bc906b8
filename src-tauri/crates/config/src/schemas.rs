//! JSON Schemas of `config.json`, `mcp-servers.json` and run profiles, generated from the types that parse them and shipped in
//! `docs/schemas`.

use super::stored::StoredServer;
use super::stored_remote::StoredRemote;
use super::{Config, Managed, RunProfile};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

/// Schema of `false` or an object of type `T`.
pub(super) struct FalseOr<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for FalseOr<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("FalseOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": false }, generator.subschema_for::<T>()] })
    }
}

/// Schema of `false`, `"ask"` or an object of type `T`.
pub(super) struct FalseOrAsk<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for FalseOrAsk<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("FalseOrAsk{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": false }, { "const": "ask" }, generator.subschema_for::<T>()] })
    }
}

/// Schema of `"*"` or a list of names.
pub(super) struct NamesOrAll;

impl JsonSchema for NamesOrAll {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NamesOrAll".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "*" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

/// Entry of a local or a remote server.
#[derive(JsonSchema)]
#[schemars(rename = "Entry", untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum EntryShape {
    Local(Box<StoredServer>),
    Remote(Box<StoredRemote>),
}

/// The servers by name, inside `mcpServers` or at the top level. Keys that begin with `_comment` are ignored.
#[derive(JsonSchema)]
#[schemars(rename = "McpServers", extend("properties" = { "mcpServers": { "type": "object", "additionalProperties": { "$ref": "#/$defs/Entry" } } }, "patternProperties" = { "^_comment": true }, "propertyNames" = { "pattern": "^(_comment.*|[A-Za-z0-9._-]+)$" }))]
#[expect(dead_code, reason = "only its shape is used")]
struct ServersShape(BTreeMap<String, EntryShape>);

fn all() -> [(&'static str, Schema); 4] {
    [
        ("config", schema_for!(Config)),
        ("managed", schema_for!(Managed)),
        ("mcp-servers", schema_for!(ServersShape)),
        ("run-profile", schema_for!(RunProfile)),
    ]
}

fn schema_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../../docs/schemas/{name}.schema.json"))
}

#[test]
fn shipped_schemas_match_the_types() {
    let write = std::env::var_os("IRONCURTAIN_WRITE_SCHEMAS").is_some();
    for (name, schema) in all() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if write {
            std::fs::write(schema_path(name), &text).unwrap();
        }
        let shipped = std::fs::read_to_string(schema_path(name)).unwrap_or_default();
        assert!(
            shipped == text,
            "docs/schemas/{name}.schema.json is out of date: run `IRONCURTAIN_WRITE_SCHEMAS=1 cargo test -p ironcurtain-config schemas`"
        );
    }
}
