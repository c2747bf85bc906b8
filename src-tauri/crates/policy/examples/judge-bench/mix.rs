//! Twenty calls from a coding session: files read and written inside and outside the sandbox, a repository, the web,
//! and a forge.

use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Tool call in the benchmark, as a client sends it.
pub struct Call {
    pub server: &'static str,
    pub tool: &'static str,
    pub arguments: Arc<Map<String, Value>>,
}

/// Returns the calls, with `base` as the home directory.
pub fn calls(base: &str) -> Vec<Call> {
    let at = |below: &str| format!("{base}/{below}");
    let (sandbox, repo) = (at("box/src/main.rs"), at("box"));
    let call = |server, tool, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default().into();
        Call { server, tool, arguments }
    };
    vec![
        call("filesystem", "list_allowed_directories", json!({})),
        call("filesystem", "list_directory", json!({ "path": at("box/src") })),
        call("filesystem", "read_file", json!({ "path": sandbox })),
        call("filesystem", "read_file", json!({ "path": at("Documents/plan.md") })),
        call("filesystem", "search_files", json!({ "path": at("box/src"), "pattern": "fn main" })),
        call(
            "filesystem",
            "edit_file",
            json!({ "path": sandbox, "edits": [{ "oldText": "a", "newText": "b" }] }),
        ),
        call("filesystem", "write_file", json!({ "path": at("box/src/lib.rs"), "content": "text" })),
        call("filesystem", "write_file", json!({ "path": at("Downloads/out.txt"), "content": "text" })),
        call(
            "filesystem",
            "move_file",
            json!({ "source": at("box/src/a.rs"), "destination": at("box/src/b.rs") }),
        ),
        call("filesystem", "get_file_info", json!({ "path": at("Downloads/in.zip") })),
        call("git", "git_status", json!({ "path": repo })),
        call("git", "git_diff", json!({ "path": repo })),
        call("git", "git_add", json!({ "path": repo, "files": ["src/main.rs"] })),
        call("git", "git_commit", json!({ "path": repo, "message": "Say what changed" })),
        call("fetch", "web_search", json!({ "query": "rust slice pattern" })),
        call("fetch", "http_fetch", json!({ "url": "https://docs.rs/serde/latest/serde/" })),
        call("fetch", "http_fetch", json!({ "url": "https://github.com/acme/app/issues" })),
        call("github", "list_issues", json!({ "owner": "acme", "repo": "app" })),
        call("github", "get_file_contents", json!({ "owner": "acme", "repo": "app", "path": "README.md" })),
        call(
            "github",
            "add_issue_comment",
            json!({ "owner": "acme", "repo": "app", "issue_number": 1, "body": "Done" }),
        ),
    ]
}
