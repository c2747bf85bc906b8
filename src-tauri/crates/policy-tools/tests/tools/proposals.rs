//! Tests the roles proposed for arguments. `proposals/servers.json` contains tools modelled on public servers, with
//! the expected roles of their arguments. Arguments that are not listed are plain text.

mod score;

use ironcurtain_policy::{Category, Role};
use ironcurtain_policy_tools::propose::{
    Confidence, Proposal, ProposalHints, ProposedArgument, Tool, propose,
};
use score::{Half, score};
use serde_json::{Value, json};
use std::path::PathBuf;

const SERVERS: &str = include_str!("proposals/servers.json");

#[test]
fn arguments_of_public_servers_get_their_roles() {
    let servers: Value = serde_json::from_str(SERVERS).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (server, of_server) in servers.as_object().unwrap() {
        for tool in of_server["tools"].as_array().unwrap() {
            for argument in annotated(server, tool) {
                seen += 1;
                let got: Vec<&str> = argument.roles.iter().map(|role| role.name()).collect();
                let wanted = tool["expect"].get(&argument.name).cloned().unwrap_or_else(|| json!(["none"]));
                if json!(got) != wanted {
                    wrong.push(format!(
                        "{server}/{}.{}: {got:?} instead of {wanted} ({})",
                        tool["name"], argument.name, argument.reason
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "{seen}");
}

#[test]
fn existing_annotations_are_matched_and_no_path_is_missed() {
    let default_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/peer");
    let folder =
        std::env::var_os("IRONCURTAIN_PEER").map_or(default_folder, PathBuf::from).join("data/annotations");
    let file = folder.join("default.json");
    if !file.exists() {
        println!("no annotations found next to this checkout; nothing compared");
        return;
    }
    let (mut paths, mut missed) = (0, Vec::new());
    for half in [Half::First, Half::Second] {
        for (server, score) in score(&file, half).unwrap() {
            let lost: usize = score.roles.values().map(|count| count.missing).sum();
            let right: usize = score.roles.values().map(|count| count.right).sum();
            let extra: usize = score.roles.values().map(|count| count.extra).sum();
            println!(
                "{server} {half:?}: {right} right, {extra} extra, {lost} missing of {}",
                score.arguments
            );
            assert!(lost * 10 <= right, "{server} {half:?}: {:?}", score.differences);
            assert!(score.tools > score.left_out.len() * 10, "{:?}", score.left_out);
            paths += score.paths;
            missed.extend(score.missed_paths);
        }
    }
    assert!(paths >= 40, "{paths}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_hint_tightens_and_never_loosens() {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let roles = |name: &str, read_only, destructive| {
        let hints = ProposalHints { read_only, destructive };
        let tool = Tool { server: "s", name, description: "", input_schema: &schema, hints };
        match propose(&tool) {
            Proposal::Annotated { arguments, .. } => (arguments[0].roles.clone(), arguments[0].confidence),
            Proposal::Unsupported { reason } => panic!("{reason}"),
        }
    };
    let (read, write, delete) = (Role::ReadPath, Role::WritePath, Role::DeletePath);
    assert_eq!(roles("read_file", None, None), (vec![read], Confidence::High));
    assert_eq!(roles("read_file", Some(false), None), (vec![read, write], Confidence::Low));
    assert_eq!(roles("read_file", Some(false), Some(true)).0, [read, write, delete]);
    // A destructive tool writes, even if `readOnlyHint` is missing.
    assert_eq!(roles("read_file", None, Some(true)), (vec![read, write, delete], Confidence::Low));
    assert_eq!(roles("read_file", None, Some(false)), (vec![read], Confidence::High));
    assert_eq!(roles("git_status", None, Some(true)).0.len(), 5);
    assert_eq!(roles("zap", None, None), (vec![read, write], Confidence::Low));
    assert_eq!(roles("zap", Some(true), Some(false)).0, [read, write]);
    assert_eq!(roles("zap", Some(false), Some(true)).0, [read, write, delete]);
    assert_eq!(roles("delete_file", Some(true), Some(false)).0, [delete]);
    assert_eq!(roles("git_status", Some(false), Some(true)).0.len(), 5);
    assert_eq!(roles("git_status", Some(true), None).0, [read]);
}

#[test]
fn a_tool_whose_nested_arguments_name_resources_is_left_out() {
    let left_out = |arguments: Value| {
        let schema = json!({ "type": "object", "properties": arguments,
            "$defs": { "Loop": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Loop" } } } } });
        let tool = Tool {
            server: "s",
            name: "write_all",
            description: "",
            input_schema: &schema,
            hints: ProposalHints::default(),
        };
        match propose(&tool) {
            Proposal::Unsupported { reason } => reason,
            Proposal::Annotated { arguments, .. } => format!("annotated {arguments:?}"),
        }
    };
    let text = json!({ "type": "string" });
    let object = |name: &str| json!({ "type": "object", "properties": { name: text } });
    let list = |items: Value| json!({ "type": "array", "items": items });
    for (arguments, path) in [
        (json!({ "files": list(object("path")) }), "`files[].path` names a resource inside an argument"),
        (json!({ "job": { "type": "object", "properties": { "in": object("file") } } }), "`job.in.file`"),
        (json!({ "groups": list(list(object("url"))) }), "`groups[][].url`"),
        (json!({ "paths": list(list(text.clone())) }), "`paths[][]`"),
        (json!({ "files": { "type": "object", "additionalProperties": text } }), "`files.*`"),
        (json!({ "what": { "anyOf": [text, object("path")] } }), "`what.path`"),
        (json!({ "a": { "$ref": "#/$defs/Loop" } }), "nested too deeply"),
        (json!({ "a": { "$ref": "#/$defs/None" } }), "has a reference that cannot be resolved"),
        (json!({ "a": { "$ref": "https://example.com/s.json" } }), "has a reference that cannot be resolved"),
    ] {
        let reason = left_out(arguments);
        assert!(reason.contains(path), "{reason}");
    }
    let edits = object("oldText");
    assert!(left_out(json!({ "edits": list(edits) })).starts_with("annotated"));
}

#[test]
fn every_argument_of_any_schema_is_proposed_and_no_path_becomes_text() {
    let kinds = [
        json!({}),
        json!(true),
        json!({ "type": "string" }),
        json!({ "type": ["string", "null"] }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": "array" }),
        json!({ "oneOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "string" }] }),
        json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "string" }] }),
        json!({ "type": "string", "description": "The user's favourite colour" }),
        json!({ "allOf": [{ "minLength": 1 }, { "pattern": "x" }] }),
    ];
    let names = [
        "path",
        "filePath",
        "FILE",
        "directory",
        "repo-path",
        "fileToRead",
        "cwd",
        "dirs",
        "workspaceFolder",
    ];
    for kind in kinds {
        for name in names {
            let tool =
                json!({ "name": "do_it", "inputSchema": { "type": "object", "properties": { name: kind } } });
            let arguments = annotated("s", &tool);
            let is_path = arguments[0].roles.iter().all(|role| role.category() == Category::Path);
            assert!(is_path && arguments.len() == 1, "{name} {kind}: {arguments:?}");
        }
    }
    for kind in ["number", "integer", "boolean"] {
        let tool = json!({ "name": "x", "inputSchema": { "type": "object", "properties": { "path": { "type": kind } } } });
        assert_eq!(annotated("s", &tool)[0].roles, [Role::None]);
    }
}

fn annotated(server: &str, tool: &Value) -> Vec<ProposedArgument> {
    let hint = |name: &str| tool["annotations"][name].as_bool();
    let hints = ProposalHints { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") };
    let text = |key: &str| tool[key].as_str().unwrap_or_default();
    let tool = Tool {
        server,
        name: text("name"),
        description: text("description"),
        input_schema: &tool["inputSchema"],
        hints,
    };
    match propose(&tool) {
        Proposal::Annotated { arguments, .. } => arguments,
        Proposal::Unsupported { reason } => panic!("{server}/{}: {reason}", tool.name),
    }
}

/// Returns the proposed roles and confidence for a tool's only argument.
fn only(name: &str, description: &str, argument: &str, schema: &Value) -> (Vec<Role>, Confidence) {
    let input_schema = json!({ "type": "object", "properties": { argument: schema } });
    let tool =
        Tool { server: "s", name, description, input_schema: &input_schema, hints: ProposalHints::default() };
    match propose(&tool) {
        Proposal::Annotated { arguments, .. } => (arguments[0].roles.clone(), arguments[0].confidence),
        Proposal::Unsupported { reason } => panic!("{reason}"),
    }
}

#[test]
fn where_name_and_description_disagree_the_stricter_is_proposed() {
    let (read, write, delete) = (Role::ReadPath, Role::WritePath, Role::DeletePath);
    let tool = |name: &str, description: &str| only(name, description, "path", &json!({ "type": "string" }));
    assert_eq!(tool("get_file", "Gets the file at path."), (vec![read], Confidence::High));
    assert_eq!(
        tool("get_file", "Gets and overwrites the file at path"),
        (vec![read, write], Confidence::Low)
    );
    assert_eq!(tool("read_file", "Read, and then delete, the file").0, [read, delete]);
    assert_eq!(
        tool("read_file", "Reads and deletes the file. Use it with care."),
        (vec![read, delete], Confidence::Low)
    );
    assert_eq!(
        tool("get_file", "Gets the file. You may write and delete it later."),
        (vec![read], Confidence::High)
    );
    let argument = |description: &str| {
        only("get_file", "", "path", &json!({ "type": "string", "description": description }))
    };
    assert_eq!(argument("Absolute path of the file"), (vec![read], Confidence::High));
    assert_eq!(argument("Absolute path of the file to write"), (vec![read, write], Confidence::Low));
    assert_eq!(argument("The file, which will be deleted"), (vec![read, delete], Confidence::Low));
}

#[test]
fn an_absolute_path_in_the_schema_is_evidence() {
    let proposed = |schema: Value| only("get_file", "", "mode", &schema).0;
    for shown in [
        json!({ "enum": ["/etc/hosts", "/etc/fstab"] }),
        json!({ "type": "string", "const": "~/notes" }),
        json!({ "type": "string", "default": "/var/log" }),
        json!({ "type": "string", "examples": ["C:\\Users\\a"] }),
        json!({ "type": "array", "items": { "type": "string", "enum": ["/srv"] } }),
    ] {
        assert_eq!(proposed(shown.clone()), [Role::ReadPath], "{shown}");
    }
    for other in [json!({ "enum": ["fast", "slow"] }), json!({ "type": "string", "default": "//" })] {
        assert_eq!(proposed(other.clone()), [Role::None], "{other}");
    }
}

#[test]
fn an_unclear_argument_gets_the_stricter_role() {
    let text = json!({ "type": "string" });
    let change = [Role::ReadPath, Role::WritePath];
    for (tool, description, argument, roles) in [
        ("convert", "Convert a file", "from", &change[..]),
        ("convert", "Convert a file", "to", &change),
        ("convert", "Convert a file", "flavour", &change),
        ("handle", "", "resource", &change),
        ("compare_them", "Compare two things", "left", &change[..1]),
        ("compare_them", "Compare two things", "right", &change[..1]),
        ("zap", "Lit un fichier", "cible", &change),
        ("zap", "", "chemin", &change),
        ("zap", "", "Zieldatei", &change),
        ("zap", "", "carpeta_destino", &change),
        ("zap", "", "文件路径", &change),
        ("zap", "Lee un documento del archivo", "cosa", &change),
        ("zap", "", "webhook", &[Role::FetchUrl]),
        ("zap", "", "site", &[Role::FetchUrl]),
        ("zap", "", "address", &[Role::FetchUrl]),
        ("zap", "Opens a website", "what", &[Role::FetchUrl]),
    ] {
        let found = only(tool, description, argument, &text);
        assert_eq!(found, (roles.to_vec(), Confidence::Low), "{tool} {description} {argument}");
    }
    // The same names, with descriptions that indicate that they do not name a resource.
    for (argument, description) in [
        ("from", "Currency to convert from"),
        ("left", "The first text"),
        ("address", "Street and city"),
        ("flavour", "The language to write in"),
    ] {
        let schema = json!({ "type": "string", "description": description });
        assert_eq!(
            only("convert", "Convert a sum", argument, &schema).0,
            [Role::None],
            "{argument}: {description}"
        );
    }
    // The descriptions mention a file, so the tool's name does not matter.
    for description in ["The document to use", "le dossier", "Der Ordner"] {
        let schema = json!({ "type": "string", "description": description });
        assert_eq!(only("zap", "", "what", &schema).0, change, "{description}");
    }
}

#[test]
fn arguments_without_evidence_are_unknown_and_free_text_is_known_by_name() {
    let text = json!({ "type": "string" });
    for (argument, schema) in [
        ("a", text.clone()),
        ("what", text.clone()),
        ("thing", json!({ "type": "string", "description": "A string value" })),
        ("settings", json!({ "type": "object", "properties": { "what": text } })),
    ] {
        assert_eq!(only("zap", "Does it", argument, &schema), (vec![Role::None], Confidence::Unknown));
    }
    for free in
        ["query", "q", "message", "content", "title", "name", "description", "id", "text", "prompt", "format"]
    {
        assert_eq!(only("zap", "Does it", free, &text), (vec![Role::None], Confidence::High), "{free}");
    }
}
