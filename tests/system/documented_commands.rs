//! Runs the commands in the README and in the guides.

use crate::scripted_user::Next;
use crate::world::{World, programs};
use ironcurtain_consent::{Lifetime, Reach};
use std::process::Command;

const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md"));

/// Returns the `ironcurtain` commands that follow a shell prompt on a page, without comments.
fn prompted(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.trim_start().strip_prefix("$ ironcurtain "));
    lines.map(|line| line.split(" #").next().unwrap().trim()).collect()
}

/// Splits a command line into words, as a shell does.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// The guides, in the order of the book.
const GUIDES: [&str; 9] = [
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/install.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/connect.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/questions.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/servers.md")),
    POLICY,
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/review.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/export.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/remote.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/troubleshooting.md")),
];

const POLICY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/policy.md"));

/// Path of the policy file in the guide. The test substitutes its own configuration folder.
const POLICY_FILE: &str = "~/.config/ironcurtain/policy/compiled-policy.json";

/// Commands in the guides that need a package registry, a keyring, another server or another machine. Other tests run
/// them.
const ELSEWHERE: [&str; 17] = [
    "servers add https://mcp.example.com/mcp --name example",
    "servers login example",
    "servers login example --client-id ID --client-secret",
    "servers logout example",
    "servers diff NAME",
    "servers annotate NAME",
    "servers open NAME --host api.example.com",
    "servers limits NAME memory=512",
    "secrets set NAME",
    "servers remove memory",
    "servers restore memory",
    "audit verify --heads heads.jsonl --key KEY --log audit-copy",
    "attach devbox",
    "pair 204517",
    "attach docker:mybox",
    "attach devbox -- ssh -p 2222 devbox ironcurtain relay",
    "pair --remove 'laptop (3v9KqWbe)'",
];

/// Returns the first JSON block on a page, which may be indented inside a list.
fn json_block(page: &str) -> &str {
    page.split("```json\n").nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn guide_commands_work_in_page_order() {
    let world = World::with(|prepared| {
        let policy = prepared.home.policy().join("compiled-policy.json");
        std::fs::write(policy, json_block(POLICY)).unwrap();
    });
    let plan = world.file("Documents/plan.md", "plan");
    assert_eq!(world.connect("filesystem").read(&plan).ok(), "plan");
    world.file(".claude.json", "{}\n");
    let policy = world.home.policy().join("compiled-policy.json");
    let readme = prompted(README);
    let of_guides = GUIDES.iter().flat_map(|page| prompted(page));
    let extra: Vec<&str> =
        of_guides.filter(|line| !readme.contains(line) && !ELSEWHERE.contains(line)).collect();
    assert!(extra.len() > 5, "{extra:?}");
    for line in extra {
        let mut words = words(&line.replace(POLICY_FILE, policy.to_str().unwrap()));
        if line.starts_with("clients connect") || line.starts_with("export enable") {
            words.push("--yes".to_owned());
        }
        let output = Command::new(programs().join("ironcurtain"))
            .args(words)
            .env("IRONCURTAIN_HOME", world.ours())
            .env("HOME", &world.home.user_home)
            .env_remove("CLAUDE_CONFIG_DIR")
            .current_dir(&world.home.user_home)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`ironcurtain {line}`: {printed}{error}");
        if line.starts_with("policy explain") {
            assert!(printed.contains("Verdict: ALLOW, by `read-documents`"), "{printed}");
        }
    }
}

#[test]
fn readme_commands_work_in_page_order() {
    let world = World::new();
    let notes = world.file("notes.txt", "mine");
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.read(&notes).ok();
    let (session, grant) = (world.sessions()[0].id.clone(), world.grants()[0].id.clone());
    let typed: Vec<&str> = prompted(README);
    let (servers, typed): (Vec<&str>, Vec<&str>) =
        typed.iter().partition(|line| line.starts_with("servers "));
    let (connecting, looking): (Vec<&str>, Vec<&str>) =
        typed.iter().partition(|line| line.starts_with("clients "));
    assert_eq!(looking.last(), Some(&"stop"), "`stop` is the last command shown");
    let run = |line: &str, words: Vec<String>| {
        let output = Command::new(programs().join("ironcurtain"))
            .args(words)
            .env("IRONCURTAIN_HOME", world.ours())
            .env("HOME", &world.home.user_home)
            .env_remove("CLAUDE_CONFIG_DIR")
            .current_dir(&world.home.user_home)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "`ironcurtain {line}`: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    };
    let settings = world.file(".claude.json", "{ \"theme\": \"dark\" }\n");
    let mut told = Vec::new();
    for line in &connecting {
        let confirmed = if *line == "clients list" { None } else { Some("--yes".to_owned()) };
        told.push(run(line, words(line).into_iter().chain(confirmed).collect()));
        if line.starts_with("clients connect") {
            let now = std::fs::read_to_string(&settings).unwrap();
            assert!(now.contains("ironcurtain-shim") && now.contains("\"theme\": \"dark\""), "{now}");
        }
    }
    assert!(told[0].contains("claude-code (Claude Code): not connected"), "{told:?}");
    assert!(told[1].contains("+      \"args\": [\"--server\", \"filesystem\"]"), "{told:?}");
    assert_eq!(connecting, ["clients list", "clients connect claude-code", "clients disconnect claude-code"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{ \"theme\": \"dark\" }\n");
    for line in looking {
        let of_session = ["session ", "pause ", "resume "].iter().any(|command| line.starts_with(command));
        let id = if of_session { &session } else { &grant };
        let as_root = if line == "doctor" { ["--allow-root", "--deep"].as_slice() } else { &[] };
        let as_root = as_root.iter().map(|option| (*option).to_owned());
        let told = run(line, words(&line.replace("ID", id)).into_iter().chain(as_root).collect());
        if line == "doctor" {
            assert!(told.contains("ok       server filesystem: starts and lists 14 tools"), "{told}");
            assert!(told.contains("sandbox: works"), "{told}");
        }
        if line.starts_with("grants revoke") {
            assert_eq!(world.grants(), []);
        }
    }
    // Installing and updating need a registry. `package_installs` covers them with a test registry and with the real
    // registries.
    let expected = ["servers catalog", "servers add memory", "servers update memory"];
    assert_eq!(servers, expected);
}
