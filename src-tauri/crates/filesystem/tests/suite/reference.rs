//! The same calls to our server and to the reference server give the same answers.
//!
//! Both work on trees that are alike. Answers are compared whole, but for what [`alike`] evens out
//! and for the calls in [`different`].

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, directory, ours};

/// Stands for the allowed directory in calls and answers.
const ROOT: &str = "@ROOT";

const INSTALL: &str = "mkdir -p target/npm && cp tests/package.json tests/package-lock.json tests/.npmrc \
    target/npm/ && npm ci --ignore-scripts --prefix target/npm";

#[test]
fn the_tools_are_the_same_but_for_their_descriptions() {
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
    for name in ["text", "windows", "no end", "empty", "binary", "long", "link", "absolute", "accent \u{e9}"]
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
fn what_is_different_is_so_for_a_reason() {
    let mut pair = Pair::new();
    for (reason, tool, arguments, text) in different() {
        let [ours, theirs] = pair.answers(tool, &arguments);
        assert_eq!(ours["content"][0]["text"], text, "{reason}");
        assert_ne!(ours, theirs, "no longer different: {reason}");
    }
}

/// Calls that our server answers otherwise, why, and how.
fn different() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        (
            "nothing is told about what a link outside leads to",
            "list_directory_with_sizes",
            json!({ "path": "leak" }),
            "[FILE] link                                  0 B\n\nTotal: 1 files, 0 directories\nCombined size: 0 B",
        ),
        (
            "replacement characters are never written over the bytes they stand for",
            "edit_file",
            json!({ "path": "binary", "edits": [], "dryRun": true }),
            "Cannot edit a file that is not UTF-8 text: @ROOT/binary",
        ),
        (
            "the reference writes beside the file first; we write in place",
            "write_file",
            json!({ "path": "directory", "content": "" }),
            "EISDIR: illegal operation on a directory, open '@ROOT/directory'",
        ),
        (
            "only the first fault of several in the arguments is told",
            "move_file",
            json!({}),
            "MCP error -32602: Input validation error: Invalid arguments for tool move_file: \
             Invalid input: expected string, received undefined at source",
        ),
        (
            "no lines at all of a directory are still lines of a directory",
            "read_text_file",
            json!({ "path": "directory", "head": -1 }),
            "EISDIR: illegal operation on a directory, read '@ROOT/directory'",
        ),
        (
            "an empty pattern leaves nothing out",
            "directory_tree",
            json!({ "path": "leak", "excludePatterns": [""] }),
            "[\n  {\n    \"name\": \"link\",\n    \"type\": \"file\"\n  }\n]",
        ),
    ]
}

/// Evens out what may differ anywhere: moments, and the call and path at the end of some errors.
fn alike(answer: &str) -> String {
    let mut alike: Vec<String> = Vec::new();
    for line in answer.split("\\n") {
        let moment = ["created: ", "modified: ", "accessed: "].iter().find(|label| line.contains(**label));
        alike.push(match moment {
            Some(_) => line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect(),
            None => line.to_owned(),
        });
    }
    let mut alike = alike.join("\\n");
    // The reference does not name the directory that it could not read as a file.
    let directory = "EISDIR: illegal operation on a directory, read";
    if let Some(at) = alike.find(directory) {
        let end = at + directory.len();
        if alike[end..].starts_with(" '") {
            let close = alike[end + 2..].find('\'').expect("a closing quote");
            alike.replace_range(end..end + 2 + close + 1, "");
        }
    }
    alike
}

/// Both servers after the handshake, each with a tree of its own.
struct Pair {
    _keep: tempfile::TempDir,
    ours: (Client, PathBuf),
    theirs: (Client, PathBuf),
}

impl Pair {
    fn new() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../target/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
        assert!(script.is_file(), "the reference server is not installed; run: {INSTALL}");
        let (keep, root) = directory();
        // Names of one length, so that columns stay where they are.
        let roots = [root.join("ours"), root.join("ref.")];
        fs::write(root.join("outside"), "").expect("file");
        for root in &roots {
            plant(root);
        }
        let [our_root, their_root] = roots;
        let mut ours = Client::start(ours().arg(&our_root));
        let mut theirs = Client::start(Command::new("node").arg(script).arg(&their_root));
        for client in [&mut ours, &mut theirs] {
            client.greet("2025-06-18", &json!({}));
        }
        Self { _keep: keep, ours: (ours, our_root), theirs: (theirs, their_root) }
    }

    fn same(&mut self, tool: &str, arguments: &Value) {
        let [ours, theirs] = self.answers(tool, arguments).map(|answer| alike(&answer.to_string()));
        assert_eq!(ours, theirs, "{tool} {arguments}");
    }

    fn answers(&mut self, tool: &str, arguments: &Value) -> [Value; 2] {
        let both = [&mut self.ours, &mut self.theirs];
        both.map(|(client, root)| {
            let root = root.display().to_string();
            let swap = |value: &Value, from: &str, to: &str| -> Value {
                serde_json::from_str(&value.to_string().replace(from, to)).expect("still JSON")
            };
            swap(&client.call(tool, &swap(arguments, ROOT, &root)), &root, ROOT)
        })
    }

    fn both<T>(&mut self, question: impl Fn(&mut Client) -> T) -> [T; 2] {
        [question(&mut self.ours.0), question(&mut self.theirs.0)]
    }
}

/// A tool without what is ours to word, and without a default that the reference spells out.
fn undescribed(tool: &Value) -> Value {
    let mut tool = tool.clone();
    assert_eq!(
        tool.as_object_mut().expect("a tool").remove("execution").unwrap_or_default()["taskSupport"]
            .as_str()
            .unwrap_or("forbidden"),
        "forbidden"
    );
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

fn plant(root: &Path) {
    for directory in ["directory/deep/er", "hollow", ".hidden", "leak"] {
        fs::create_dir_all(root.join(directory)).expect("directory");
    }
    let long: String = (0..400).map(|line| format!("line {line} \u{e4}\u{20ac}\n")).collect();
    for (name, content) in [
        ("text", "one\ntwo\nthree\n".as_bytes()),
        ("windows", b"a\r\nb\r\nc\r\n"),
        ("no end", b"a\nb"),
        ("empty", b""),
        ("binary", b"\x00\xff\xfe caf\xe9 \xe2\x82\n\xf0\x9f\x98\x80\n\xc3"),
        ("long", long.as_bytes()),
        ("indented", b"fn f() {\n    if x {\n        y();\n    }\n}\n"),
        ("accent e\u{301}", b"composed\n"),
        ("picture.PNG", b"\x89PNG"),
        ("sound.ogg", b"OggS"),
        ("vector.svg", b"<svg/>"),
        ("odd #%? name.bin", b"\x00\x01\x02"),
        (".png", b"x"),
        ("B", &[b'b'; 5000]),
        ("n1", b"1"),
        ("n2", b"2"),
        ("_", b"_"),
        ("-", b"-"),
        ("{text}", b"x"),
        ("[z]", b"x"),
        (".hidden/config", b"x"),
        ("directory/lib.rs", b"x"),
        ("directory/deep/main.rs", b"xx"),
        ("directory/deep/er/lib.rs", b"xxx"),
    ] {
        fs::write(root.join(name), content).expect("file");
    }
    for (link, target) in [
        ("link", PathBuf::from("text")),
        ("absolute", root.join("text")),
        ("folder", PathBuf::from("directory")),
        ("escape", root.join("../outside")),
        ("leak/link", PathBuf::from("/etc/passwd")),
        ("dangling", PathBuf::from("nowhere")),
        ("loop", PathBuf::from("loop")),
    ] {
        symlink(target, root.join(link)).expect("link");
    }
}
