//! Tool definitions for `tools/list`.
//!
//! - Names, arguments, schemas and hints match those of the reference server; the descriptions differ.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the definitions of all tools.
pub(crate) fn catalogue() -> Vec<Tool> {
    let mut tools = reading();
    tools.extend(writing());
    tools
}

fn reading() -> Vec<Tool> {
    vec![
        tool(
            "read_file",
            "Read File (Deprecated)",
            "Reads a text file. Deprecated: use read_text_file.",
            read_text_input(),
            Effect::Reads,
        ),
        tool(
            "read_text_file",
            "Read Text File",
            "Reads any file as text; invalid UTF-8 is replaced. \
             `head` reads only the first lines, `tail` only the last ones: use them \
             for large files. Works within the allowed directories only.",
            read_text_input(),
            Effect::Reads,
        ),
        media_tool(),
        tool(
            "read_multiple_files",
            "Read Multiple Files",
            "Reads several text files in one call; each is returned below its path. A file that \
             cannot be read is reported in its place and does not stop the others. Works within \
             the allowed directories only.",
            schema(
                json!({ "paths": {
                    "minItems": 1,
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The files to read.",
                } }),
                &["paths"],
            ),
            Effect::Reads,
        ),
        tool(
            "list_directory",
            "List Directory",
            "Lists what a directory contains, each entry marked [FILE] or [DIR]. Works within the \
             allowed directories only.",
            path_input(),
            Effect::Reads,
        ),
        tool(
            "list_directory_with_sizes",
            "List Directory with Sizes",
            "Lists what a directory contains with the sizes of the files and totals. Works within \
             the allowed directories only.",
            schema(
                json!({
                    "path": { "type": "string" },
                    "sortBy": {
                        "default": "name",
                        "description": "Sort by name, or by size with the largest first",
                        "type": "string",
                        "enum": ["name", "size"],
                    },
                }),
                &["path"],
            ),
            Effect::Reads,
        ),
        tool(
            "directory_tree",
            "Directory Tree",
            "Returns everything below a directory as JSON: each entry has a `name` and a `type`, \
             file or directory, and directories have `children`. Works within the allowed \
             directories only.",
            schema(json!({ "path": { "type": "string" }, "excludePatterns": patterns() }), &["path"]),
            Effect::Reads,
        ),
        tool(
            "search_files",
            "Search Files",
            "Finds files and directories whose path below the given one matches a glob pattern, \
             and returns their full paths. `*.ext` matches in that directory itself, `**/*.ext` at \
             any depth. Works within the allowed directories only.",
            schema(
                json!({
                    "path": { "type": "string" },
                    "pattern": { "type": "string" },
                    "excludePatterns": patterns(),
                }),
                &["path", "pattern"],
            ),
            Effect::Reads,
        ),
        tool(
            "get_file_info",
            "Get File Info",
            "Returns the size, times, type and permissions of a file or directory. Works within the \
             allowed directories only.",
            path_input(),
            Effect::Reads,
        ),
        tool(
            "list_allowed_directories",
            "List Allowed Directories",
            "Lists the directories this server may access, including everything below them.",
            json!({ "$schema": DRAFT, "type": "object", "properties": {} }),
            Effect::Reads,
        ),
    ]
}

fn writing() -> Vec<Tool> {
    vec![
        tool(
            "write_file",
            "Write File",
            "Creates a text file, or replaces the whole content of an existing one without asking. \
             Works within the allowed directories only.",
            schema(
                json!({ "path": { "type": "string" }, "content": { "type": "string" } }),
                &["path", "content"],
            ),
            Effect::Replaces,
        ),
        tool(
            "edit_file",
            "Edit File",
            "Replaces passages of a text file, one after the other, and returns the changes as a \
             git-style diff. With `dryRun` the file is not changed. Works within the allowed \
             directories only.",
            edit_input(),
            Effect::Changes,
        ),
        tool(
            "create_directory",
            "Create Directory",
            "Creates a directory and its missing parents; succeeds if it exists. Works \
             within the allowed directories only.",
            path_input(),
            Effect::Adds,
        ),
        tool(
            "move_file",
            "Move File",
            "Moves or renames a file or directory. Fails when the destination exists. Both paths \
             must be within the allowed directories.",
            schema(
                json!({ "source": { "type": "string" }, "destination": { "type": "string" } }),
                &["source", "destination"],
            ),
            Effect::Changes,
        ),
    ]
}

/// Effect of a tool on the disk, which determines its hints.
enum Effect {
    Reads,
    Adds,
    Replaces,
    Changes,
}

impl Effect {
    fn hints(&self) -> ToolAnnotations {
        let (read_only, destructive, idempotent) = match self {
            Self::Reads => (true, None, None),
            Self::Adds => (false, Some(false), Some(true)),
            Self::Replaces => (false, Some(true), Some(true)),
            Self::Changes => (false, Some(true), Some(false)),
        };
        ToolAnnotations::from_raw(None, Some(read_only), destructive, idempotent, Some(false))
    }
}

fn tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: Value,
    effect: Effect,
) -> Tool {
    let output = closed_schema(json!({ "content": { "type": "string" } }), &["content"]);
    with_output(name, title, description, input, effect, output)
}

fn media_tool() -> Tool {
    let text = || json!({ "type": "string" });
    let inline = closed_subschema(
        json!({
            "type": { "type": "string", "enum": ["image", "audio"] },
            "data": text(),
            "mimeType": text(),
        }),
        &["type", "data", "mimeType"],
    );
    let resource =
        closed_subschema(json!({ "uri": text(), "mimeType": text(), "blob": text() }), &["uri", "blob"]);
    let embedded = closed_subschema(
        json!({ "type": { "type": "string", "const": "resource" }, "resource": resource }),
        &["type", "resource"],
    );
    let items = json!({ "type": "array", "items": { "anyOf": [inline, embedded] } });
    with_output(
        "read_media_file",
        "Read Media File",
        "Reads a file as base64 with its MIME type: images and audio as such, anything else as an \
         embedded resource. Works within the allowed directories only.",
        path_input(),
        Effect::Reads,
        closed_schema(json!({ "content": items }), &["content"]),
    )
}

fn with_output(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: Value,
    effect: Effect,
    output: Value,
) -> Tool {
    let mut tool = Tool::new(name, description, Arc::new(object(input)));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(object(output)));
    tool.annotations = Some(effect.hints());
    tool
}

fn path_input() -> Value {
    schema(json!({ "path": { "type": "string" } }), &["path"])
}

fn read_text_input() -> Value {
    schema(
        json!({
            "path": { "type": "string" },
            "tail": { "description": "Read only this many of the last lines", "type": "number" },
            "head": { "description": "Read only this many of the first lines", "type": "number" },
        }),
        &["path"],
    )
}

fn edit_input() -> Value {
    schema(
        json!({
            "path": { "type": "string" },
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "oldText": { "type": "string", "description": "The passage to replace" },
                        "newText": { "type": "string", "description": "The replacement" },
                    },
                    "required": ["oldText", "newText"],
                },
            },
            "dryRun": {
                "default": false,
                "description": "Show the diff without changing the file",
                "type": "boolean",
            },
        }),
        &["path", "edits"],
    )
}

fn patterns() -> Value {
    json!({ "default": [], "type": "array", "items": { "type": "string" } })
}

fn schema(properties: Value, required: &[&str]) -> Value {
    json!({ "$schema": DRAFT, "type": "object", "properties": properties, "required": required })
}

fn closed_schema(properties: Value, required: &[&str]) -> Value {
    json!({
        "$schema": DRAFT,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn closed_subschema(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn object(value: Value) -> JsonObject {
    if let Value::Object(object) = value { object } else { JsonObject::new() }
}
