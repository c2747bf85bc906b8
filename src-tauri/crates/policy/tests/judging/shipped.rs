//! Tests that the shipped policy and annotations behave as the README says.

use crate::scene::{Scene, path, spelled};
use ironcurtain_policy::{Annotations, DynamicLists, Policy, ServerReach, defaults};
use serde_json::{Value, json};

fn shipped() -> Scene {
    let mut scene = Scene::new(&[]);
    scene.annotations = Annotations::from_json(defaults::ANNOTATIONS_JSON, "tool-annotations.json").unwrap();
    scene.policy =
        Policy::from_json(defaults::POLICY_JSON, "compiled-policy.json", &spelled, &DynamicLists::default())
            .unwrap();
    scene.protected = ironcurtain_paths::protected::secrets(&path("/home/ann")).into_iter().collect();
    scene
}

#[test]
fn the_fourteen_tools_of_the_reference_server_are_annotated_with_their_shapes() {
    let scene = shipped();
    let names: Vec<&str> = scene.annotations.tools("filesystem").map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "create_directory",
            "directory_tree",
            "edit_file",
            "get_file_info",
            "list_allowed_directories",
            "list_directory",
            "list_directory_with_sizes",
            "move_file",
            "read_file",
            "read_media_file",
            "read_multiple_files",
            "read_text_file",
            "search_files",
            "write_file",
        ]
    );
    for (name, tool) in scene.annotations.tools("filesystem") {
        let schema = tool.input_schema.as_ref().unwrap();
        let declared: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let annotated: Vec<&str> = tool.arguments.iter().map(|(argument, _)| argument.as_ref()).collect();
        assert_eq!(declared, annotated, "{name}");
    }
}

#[test]
fn session_sandbox_is_allowed_and_everything_else_asks() {
    let scene = shipped();
    let verdict = |tool: &str, arguments: Value| scene.verdict_text("filesystem", tool, &arguments);
    assert_eq!(
        verdict("read_text_file", json!({ "path": "/box/a", "head": 3 })),
        "allow structural-sandbox-allow"
    );
    assert_eq!(verdict("list_allowed_directories", json!({})), "allow structural-introspection-allow");
    assert_eq!(verdict("read_text_file", json!({ "path": "/home/ann/a" })), "escalate ask-before-reading");
    assert_eq!(
        verdict("write_file", json!({ "path": "/home/ann/a", "content": "" })),
        "escalate ask-before-writing"
    );
    let moved = json!({ "source": "/home/ann/a", "destination": "/box/a" });
    let ironcurtain_policy::Verdict::Escalate(asked) = scene.judge("filesystem", "move_file", &moved) else {
        panic!()
    };
    let rules: Vec<&str> = asked.values.iter().map(|asked| asked.by.rule.as_ref()).collect();
    assert_eq!(rules, ["ask-before-reading", "ask-before-deleting"]);
}

#[test]
fn call_without_reach_is_allowed_and_asks_if_its_server_may_reach_something() {
    let mut scene = shipped();
    let memory = json!({ "servers": { "memory": { "tools": [
        { "toolName": "read_graph", "args": {} }, { "toolName": "search", "args": { "query": ["none"] } },
        { "toolName": "load", "args": { "path": ["read-path"] } } ] } } });
    scene.annotations = Annotations::from_json(&memory.to_string(), "a").unwrap();
    let verdict = |scene: &Scene| {
        let of = |tool: &str, arguments: Value| scene.verdict_text("memory", tool, &arguments);
        [
            of("read_graph", json!({})),
            of("search", json!({ "query": "x" })),
            of("load", json!({ "path": "/a" })),
        ]
    };
    let (free, asks) = ("allow allow-what-reaches-nothing", "escalate ask-before-anything-else");
    let reads = "escalate ask-before-reading";
    assert_eq!(verdict(&scene), [asks, asks, reads]);
    scene.reach = ServerReach::Nothing;
    assert_eq!(verdict(&scene), [free, free, reads]);
    scene.reach = ServerReach::Something;
    assert_eq!(verdict(&scene), [asks, asks, reads]);
}

#[test]
fn dry_run_edit_asks_to_read() {
    let scene = shipped();
    let edit = |dry: bool| {
        let edits = json!([{ "oldText": "a", "newText": "b" }]);
        let call =
            scene.call("filesystem", "edit_file", &json!({ "path": "/a", "edits": edits, "dryRun": dry }));
        call.unwrap().roles().iter().map(|role| role.name()).collect::<Vec<_>>()
    };
    assert_eq!(edit(true), ["read-path"]);
    assert_eq!(edit(false), ["read-path", "write-path"]);
}

#[test]
fn credentials_are_refused_and_so_is_searching_a_home() {
    let scene = shipped();
    let read = |at: &str| scene.verdict_text("filesystem", "read_file", &json!({ "path": at }));
    for at in ["/home/ann/.ssh/id_ed25519", "/home/ann/.netrc", "/etc/shadow", "/proc/1/environ", "/dev/sda"]
    {
        assert_eq!(read(at), "deny structural-protected-path", "{at}");
    }
    assert_eq!(read("/home/ann/.sshx"), "escalate ask-before-reading");
    assert_eq!(read("/etc/hosts"), "escalate ask-before-reading");
    for tool in ["search_files", "directory_tree"] {
        let below = |at: &str| match tool {
            "search_files" => json!({ "path": at, "pattern": "*" }),
            _ => json!({ "path": at }),
        };
        assert_eq!(
            scene.verdict_text("filesystem", tool, &below("/home/ann")),
            "deny structural-protected-path"
        );
        assert_eq!(
            scene.verdict_text("filesystem", tool, &below("/home/ann/src")),
            "escalate ask-before-reading"
        );
    }
    assert_eq!(
        scene.verdict_text("filesystem", "list_directory", &json!({ "path": "/home/ann" })),
        "escalate ask-before-reading"
    );
}

#[test]
fn arguments_that_do_not_fit_the_declared_shape_are_refused() {
    let scene = shipped();
    for (tool, arguments) in [
        ("read_text_file", json!({})),
        ("read_text_file", json!({ "path": "/box/a", "head": "3" })),
        ("read_text_file", json!({ "path": ["/box/a"] })),
        ("read_multiple_files", json!({ "paths": "/box/a" })),
        ("list_directory_with_sizes", json!({ "path": "/box", "sortBy": "age" })),
        ("edit_file", json!({ "path": "/box/a", "edits": [{ "oldText": "a" }] })),
        (
            "edit_file",
            json!({ "path": "/box/a", "edits": [{ "oldText": "a", "newText": "b", "path": "/c" }] }),
        ),
        ("edit_file", json!({ "path": "/box/a", "edits": [], "dryRun": "true" })),
        ("list_allowed_directories", json!({ "x": 1 })),
    ] {
        assert_eq!(
            scene.verdict_text("filesystem", tool, &arguments),
            "deny structural-invalid-argument",
            "{arguments}"
        );
    }
    assert_eq!(
        scene.verdict_text(
            "filesystem",
            "list_directory_with_sizes",
            &json!({ "path": "/box", "sortBy": "size" })
        ),
        "allow structural-sandbox-allow"
    );
}
