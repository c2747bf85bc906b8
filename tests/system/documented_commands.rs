//! Commands that the README and the guide tell a new user to type.

use crate::scripted_user::Next;
use crate::world::{World, programs};
use ironcurtain_daemon::consent::{Lifetime, Reach};
use std::process::Command;

const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md"));

/// Returns the `ironcurtain` commands after a prompt, without comments.
fn prompted() -> Vec<&'static str> {
    let lines = README.lines().filter_map(|line| line.strip_prefix("$ ironcurtain "));
    lines.map(|line| line.split(" #").next().unwrap().trim()).collect()
}

/// Splits a command line as a shell does.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// Guide pages for all users.
const GUIDE: [&str; 7] = [
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/README.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/install.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/connect.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/questions.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/review.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/servers.md")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/troubleshooting.md")),
];

/// Optional guide commands that are run by the tests in `secrets` and `servers_add`.
const ELSEWHERE: [&str; 2] = ["secrets set NAME", "servers add FILE.mcpb"];

#[test]
fn every_guide_command_is_run_by_a_test() {
    let typed = prompted();
    let of_guide = GUIDE.iter().flat_map(|page| {
        let lines = page.lines().filter_map(|line| line.strip_prefix("$ "));
        lines.chain(page.split('`').skip(1).step_by(2)).filter_map(|line| line.strip_prefix("ironcurtain "))
    });
    let of_guide: Vec<&str> = of_guide.collect();
    assert!(of_guide.len() > 6, "{of_guide:?}");
    let untyped: Vec<&str> =
        of_guide.into_iter().filter(|line| !typed.contains(line) && !ELSEWHERE.contains(line)).collect();
    assert_eq!(untyped, Vec::<&str>::new());
}

#[test]
fn readme_commands_work_in_page_order() {
    let world = World::new();
    let notes = world.file("notes.txt", "mine");
    let mut client = world.connect("filesystem");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.read(&notes).ok();
    let (session, grant) = (world.sessions()[0].id.clone(), world.grants()[0].id.clone());
    let typed: Vec<&str> = prompted();
    let (servers, typed): (Vec<&str>, Vec<&str>) =
        typed.iter().partition(|line| line.starts_with("servers "));
    let (connecting, looking): (Vec<&str>, Vec<&str>) =
        typed.iter().partition(|line| line.starts_with("clients "));
    assert_eq!(looking.last(), Some(&"stop"), "stopping is the last that is shown");
    let run = |line: &str, words: Vec<String>| {
        let output = Command::new(programs().join("ironcurtain"))
            .args(words)
            .env("IRONCURTAIN_HOME", world.ours())
            .env("HOME", &world.home.person)
            .env_remove("CLAUDE_CONFIG_DIR")
            .current_dir(&world.home.person)
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
        let of_session = ["session ", "pause "].iter().any(|command| line.starts_with(command));
        let id = if of_session { &session } else { &grant };
        let as_root = (line == "doctor").then(|| "--allow-root".to_owned());
        let told = run(line, words(&line.replace("ID", id)).into_iter().chain(as_root).collect());
        if line == "doctor" {
            assert!(told.contains("ok       server filesystem: it starts, and lists 14 tools"), "{told}");
            assert!(told.contains("sandbox: one was made just now"), "{told}");
        }
        if line.starts_with("grants revoke") {
            assert_eq!(world.grants(), []);
        }
    }
    // Installing and updating need a registry; `package_installs` tests both with a test registry and with the real
    // ones.
    let expected = ["servers catalog", "servers add memory", "servers update memory"];
    assert_eq!(servers, expected);
}
