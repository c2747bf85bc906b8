//! Tests that IronCurtain's server and the reference server give the same results for the same calls.
//!
//! Both servers work on identical trees. Results are compared in full, except for the parts that `pair::alike`
//! normalizes and the calls in `different`.

mod pair;

use serde_json::{Value, json};

use self::pair::{Pair, ROOT};

#[test]
fn the_tools_are_the_same_except_for_their_descriptions() {
    let mut pair = Pair::new();
    let [ours, theirs] =
        pair.both(|client| client.request("tools/list", &json!({}))["result"]["tools"].clone());
    let by_name = |tools: Value| {
        let mut tools: Vec<Value> = tools.as_array().expect("tools").iter().map(undescribed).collect();
        tools.sort_by_key(|tool| tool["name"].as_str().map(str::to_owned));
        tools
    };
    assert_eq!(by_name(ours), by_name(theirs));
}

#[test]
fn reading_is_the_same() {
    let mut pair = Pair::new();
    let lines = [json!({}), json!({ "head": 1 }), json!({ "head": 2.5 }), json!({ "head": 9999 })];
    let tails = [json!({ "tail": 1 }), json!({ "tail": 2 }), json!({ "tail": 900 }), json!({ "tail": 9999 })];
    let rest =
        [json!({ "head": 0 }), json!({ "tail": -2 }), json!({ "head": -2 }), json!({ "head": 1, "tail": 1 })];
    for name in
        ["text", "windows", "no end", "empty", "binary", "long", "link", "absolute", "accent e\u{301}"]
    {
        for more in lines.iter().chain(&tails).chain(&rest) {
            let mut arguments = more.clone();
            arguments["path"] = json!(format!("{ROOT}/{name}"));
            pair.same("read_text_file", &arguments);
            pair.same("read_file", &arguments);
        }
        pair.same("get_file_info", &json!({ "path": name }));
    }
    for name in ["picture.PNG", "sound.ogg", "odd #%? name.bin", "vector.svg", "empty", ".png"] {
        pair.same("read_media_file", &json!({ "path": format!("{ROOT}/{name}") }));
    }
    let paths = ["text", "missing", "escape", "@ROOT/binary", "/etc/hostname"];
    pair.same("read_multiple_files", &json!({ "paths": paths }));
    pair.same("list_allowed_directories", &json!({}));
}

#[test]
fn refusals_are_the_same() {
    let mut pair = Pair::new();
    let paths = [
        "missing",
        "missing/below",
        "escape",
        "dangling",
        "dangling/below",
        "loop",
        "directory",
        "text/below",
        "..",
        "../other",
        "/",
        "/etc/passwd",
        "~",
        "~/x",
        "C:\\x",
        "a\u{0}b",
        "",
        ".",
        "link/below",
        "@ROOT-twin/x",
    ];
    for path in paths {
        for tool in
            ["read_text_file", "read_media_file", "get_file_info", "list_directory", "create_directory"]
        {
            pair.same(tool, &json!({ "path": path }));
        }
        pair.same("directory_tree", &json!({ "path": path }));
        pair.same("search_files", &json!({ "path": path, "pattern": "nothing" }));
        pair.same("edit_file", &json!({ "path": path, "edits": [] }));
        pair.same("move_file", &json!({ "source": path, "destination": "text" }));
        pair.same("move_file", &json!({ "source": "missing", "destination": path }));
    }
    for (tool, arguments) in [
        ("nope", json!({})),
        ("read_file", json!({})),
        ("read_file", json!({ "path": 1 })),
        ("read_file", json!({ "path": null })),
        ("read_file", json!({ "path": "text", "head": "1" })),
        ("read_multiple_files", json!({ "paths": [] })),
        ("read_multiple_files", json!({ "paths": "text" })),
        ("read_multiple_files", json!({ "paths": ["text", true] })),
        ("write_file", json!({ "path": "text", "content": {} })),
        ("edit_file", json!({ "path": "text", "edits": [1] })),
        ("edit_file", json!({ "path": "text", "edits": [], "dryRun": "yes" })),
        ("edit_file", json!({ "path": "text", "edits": [{ "oldText": "absent", "newText": "" }] })),
        ("list_directory_with_sizes", json!({ "path": ".", "sortBy": "age" })),
        ("directory_tree", json!({ "path": ".", "excludePatterns": [1] })),
    ] {
        pair.same(tool, &arguments);
    }
}

#[test]
fn listing_is_the_same() {
    let mut pair = Pair::new();
    for path in ["@ROOT", ".", "directory", "directory/", "directory/deep", "hollow"] {
        pair.same("list_directory", &json!({ "path": path }));
        pair.same("directory_tree", &json!({ "path": path }));
        for order in ["name", "size"] {
            pair.same("list_directory_with_sizes", &json!({ "path": path, "sortBy": order }));
        }
    }
    let patterns: [&[&str]; 9] = [
        &["deep"],
        &["*.rs"],
        &["**/*.rs"],
        &["directory/*"],
        &["**/deep/**"],
        &[".hidden", "text"],
        &["directory/deep"],
        &["**"],
        &["lib.rs"],
    ];
    for patterns in patterns {
        pair.same("directory_tree", &json!({ "path": ROOT, "excludePatterns": patterns }));
        pair.same("search_files", &json!({ "path": ROOT, "pattern": "**", "excludePatterns": patterns }));
    }
}

#[test]
fn searching_is_the_same() {
    let mut pair = Pair::new();
    for pattern in [
        "*",
        "**",
        "**/*",
        "*.rs",
        "**/*.rs",
        "directory/**",
        "directory/*",
        "**/deep",
        "**/deep/**",
        "d*/**/lib.rs",
        "{text,empty}",
        "*.{PNG,ogg}",
        "**/{lib,main}.rs",
        "{directory/deep,hollow}/**",
        "[et]*",
        "[!et]*",
        "[^a-y]*",
        "????",
        "?",
        ".*",
        "**/.*",
        "!text",
        "!**/*.rs",
        "#text",
        "",
        "directory/",
        "/text",
        "./text",
        "Text",
        "l*k",
        "**/**/lib.rs",
        "a**",
        "***",
        "[",
        "]",
        "{",
        "{text",
        "text}",
        "\\",
        "\\t*",
        "accent ?",
        "[\u{e9}e]*",
        "directory//lib.rs",
        "{text}",
        "{,text}",
        "**/",
        "*/",
        "t[a-g]xt",
        "t[!a-g]xt",
        "[]t]*",
        "[z-a]",
        "[[:alpha:]]*",
        "*[[:digit:]]*",
        "+(te|xt)",
        "@(text|empty)",
        "?(t)ext",
        "!(text)",
        "*(l)ong",
        "**/!(*.rs)",
        "n{1..3}",
        "n{01..3}",
        "n{c..a}",
        "directory/../text",
        "..",
        ".",
        "**/..",
        "directory/./lib.rs",
        "{a,{text,empty}}",
        "{t,l}{ext,ong}",
        "**.rs",
        "directory/**.rs",
        "**/deep/../*",
        "*\u{0}*",
        "!!text",
        "[t",
        "[!]",
        "[a]]",
        "@(text",
        "+()",
        "te@(x)t",
    ] {
        pair.same("search_files", &json!({ "path": ROOT, "pattern": pattern }));
    }
    pair.same("search_files", &json!({ "path": "directory", "pattern": "**/*.rs" }));
    pair.same("search_files", &json!({ "path": "folder", "pattern": "**" }));
}

#[test]
fn writing_and_moving_are_the_same() {
    let mut pair = Pair::new();
    for path in
        ["new", "text", "link", "escape", "dangling", "loop", "missing/new", "text/new", "directory/new"]
    {
        pair.same("write_file", &json!({ "path": path, "content": "h\u{e9}llo\n\u{0}" }));
        pair.same("read_text_file", &json!({ "path": path }));
    }
    for path in ["made", "made/a/b/c", "directory", "text", "link", "folder", "folder/below/it", "text/below"]
    {
        pair.same("create_directory", &json!({ "path": path }));
    }
    for (source, destination) in [
        ("new", "moved"),
        ("moved", "moved"),
        ("moved", "text"),
        ("missing", "x"),
        ("made", "made/inside"),
        ("directory", "elsewhere"),
        ("elsewhere", "elsewhere2/x"),
        ("moved", "elsewhere/moved"),
        ("link", "link2"),
        ("escape", "x"),
        ("text", "escape"),
        ("text", "hollow"),
        ("hollow", "elsewhere"),
        (".", "x"),
    ] {
        pair.same("move_file", &json!({ "source": source, "destination": destination }));
    }
    pair.same("directory_tree", &json!({ "path": "." }));
}

#[test]
fn editing_is_the_same() {
    let mut pair = Pair::new();
    let edits = [
        json!([{ "oldText": "line 10\n", "newText": "ten\n" }]),
        json!([{ "oldText": "line 20\nline 21\n", "newText": "" }, { "oldText": "line 25", "newText": "a\nb\nc" }]),
        json!([{ "oldText": "  line 30\n\tline 31", "newText": "  x\n    y\n\tz" }]),
        json!([{ "oldText": "line 399", "newText": "```\n$1 $& \\0" }]),
        json!([{ "oldText": "```", "newText": "````" }]),
        json!([{ "oldText": "", "newText": "at the start\n" }]),
        json!([]),
    ];
    for edits in &edits {
        for dry_run in [true, false] {
            pair.same("edit_file", &json!({ "path": "long", "edits": edits, "dryRun": dry_run }));
        }
        pair.same("read_text_file", &json!({ "path": "long" }));
    }
    for (path, old, new) in [
        ("no end", "b", "b\n"),
        ("no end", "b\n", "b"),
        ("empty", "", "x\n"),
        ("empty", "x\n", ""),
        ("windows", "b\r\nc", "B\nC"),
        ("indented", "if x {\ny();\n}", "if z {\n    w();\n}"),
    ] {
        pair.same("edit_file", &json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] }));
    }
}

#[test]
fn listed_differences_still_exist() {
    let mut pair = Pair::new();
    for (reason, tool, arguments, text) in different() {
        let [ours, theirs] = pair.answers(tool, &arguments);
        assert_eq!(ours["content"][0]["text"], text, "{reason}");
        assert_ne!(ours, theirs, "no longer different: {reason}");
    }
}

/// Returns the calls whose results differ: the reason, the tool, the arguments, and the result of IronCurtain's server.
///
/// Other tests cover differences that a single call cannot show:
///
/// - an empty list of roots allows nothing, while the reference server keeps its previous directories
///   (`roots`);
/// - a call waits for changes to the roots that were announced before the call (`roots`);
/// - an edited file keeps its CR LF line endings, while the reference server changes them to LF (`files`);
/// - named pipes and devices are rejected immediately, while the reference server waits for them (`files`);
/// - a move between two file systems works, and a race never replaces the destination (`files`);
/// - text over 64 MiB, trees over 200 levels and extreme patterns are limited (`files`);
/// - dates are in UTC, regardless of the server's time zone.
fn different() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        (
            "nothing is revealed about targets outside",
            "list_directory_with_sizes",
            json!({ "path": "leak" }),
            "[FILE] link                                  0 B\n\nTotal: 1 files, 0 directories\nCombined size: 0 B",
        ),
        (
            "replacement characters never overwrite the original bytes",
            "edit_file",
            json!({ "path": "binary", "edits": [], "dryRun": true }),
            "Cannot edit a file that is not UTF-8 text: @ROOT/binary",
        ),
        (
            "the reference writes a temporary file first; we write in place",
            "write_file",
            json!({ "path": "directory", "content": "" }),
            "EISDIR: illegal operation on a directory, open '@ROOT/directory'",
        ),
        (
            "only the first of several invalid arguments is reported",
            "move_file",
            json!({}),
            "MCP error -32602: Input validation error: Invalid arguments for tool move_file: \
             Invalid input: expected string, received undefined at source",
        ),
        (
            "reading no lines of a directory still fails",
            "read_text_file",
            json!({ "path": "directory", "head": -1 }),
            "EISDIR: illegal operation on a directory, read '@ROOT/directory'",
        ),
        (
            "a name in another Unicode form is a different name: the judged file is opened",
            "read_text_file",
            json!({ "path": "accent \u{e9}" }),
            "ENOENT: no such file or directory, open '@ROOT/accent \u{e9}'",
        ),
        (
            "an empty pattern excludes nothing",
            "directory_tree",
            json!({ "path": "leak", "excludePatterns": [""] }),
            "[\n  {\n    \"name\": \"link\",\n    \"type\": \"file\"\n  }\n]",
        ),
    ]
}

/// Returns a tool's definition without its description, and without a default value that only the reference server's
/// definition states.
fn undescribed(tool: &Value) -> Value {
    let mut tool = tool.clone();
    let execution = tool.as_object_mut().expect("a tool").remove("execution");
    let tasks = execution.as_ref().and_then(|execution| execution["taskSupport"].as_str());
    assert_eq!(tasks.unwrap_or("forbidden"), "forbidden");
    forget_descriptions(&mut tool);
    tool
}

fn forget_descriptions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("description");
            object.values_mut().for_each(forget_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
