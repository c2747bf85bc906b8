//! Runs both servers on identical trees and normalizes their results.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, directory, ours};

/// Placeholder for the allowed directory in calls and results.
pub(super) const ROOT: &str = "@ROOT";

const INSTALL: &str = "mkdir -p target/npm && cp tests/package.json tests/package-lock.json tests/.npmrc \
    target/npm/ && npm ci --ignore-scripts --prefix target/npm";

/// Both servers after the handshake, each with its own tree.
pub(super) struct Pair {
    _keep: tempfile::TempDir,
    ours: (Client, PathBuf),
    theirs: (Client, PathBuf),
}

impl Pair {
    pub(super) fn new() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../target/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
        assert!(script.is_file(), "the reference server is not installed; run: {INSTALL}");
        let (keep, root) = directory();
        // The names have equal lengths, so columns stay aligned.
        let roots = [root.join("ours"), root.join("ref.")];
        fs::write(root.join("outside"), "").expect("file");
        for root in &roots {
            plant(root);
        }
        let [our_root, their_root] = roots;
        let mut ours = Client::start(ours().arg(&our_root));
        let mut theirs = Client::start(Command::new("node").arg(script).arg(&their_root));
        for client in [&mut ours, &mut theirs] {
            client.handshake("2025-06-18", &json!({}));
        }
        Self { _keep: keep, ours: (ours, our_root), theirs: (theirs, their_root) }
    }

    pub(super) fn same(&mut self, tool: &str, arguments: &Value) {
        let [ours, theirs] = self.answers(tool, arguments).map(|answer| alike(&answer.to_string()));
        assert_eq!(ours, theirs, "{tool} {arguments}");
    }

    pub(super) fn answers(&mut self, tool: &str, arguments: &Value) -> [Value; 2] {
        let both = [&mut self.ours, &mut self.theirs];
        both.map(|(client, root)| {
            let root = root.display().to_string();
            let swap = |value: &Value, from: &str, to: &str| -> Value {
                serde_json::from_str(&value.to_string().replace(from, to)).expect("still JSON")
            };
            swap(&client.call(tool, &swap(arguments, ROOT, &root)), &root, ROOT)
        })
    }

    pub(super) fn both<T>(&mut self, question: impl Fn(&mut Client) -> T) -> [T; 2] {
        [question(&mut self.ours.0), question(&mut self.theirs.0)]
    }
}

/// Normalizes the parts of results that can differ: times, and the system call and path at the end of some errors.
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
    // The reference server omits the path of a directory that it failed to read as a file.
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
