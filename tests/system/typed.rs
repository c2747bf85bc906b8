//! The commands that the README tells a newcomer to type, typed.

use crate::consent::Next;
use crate::world::{World, programs};
use ironcurtain_daemon::consent::{Lifetime, Reach};
use std::process::Command;

const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md"));

/// The commands of `ironcurtain` that stand behind a prompt, without their comments.
fn prompted() -> Vec<&'static str> {
    let lines = README.lines().filter_map(|line| line.strip_prefix("$ ironcurtain "));
    lines.map(|line| line.split(" #").next().unwrap().trim()).collect()
}

/// The words of a command line, as a shell would split them.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn each_command_of_the_readme_does_what_it_says_in_the_order_of_the_page() {
    let world = World::new();
    let notes = world.file("notes.txt", "mine");
    let mut client = world.connect("filesystem");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.read(&notes).ok();
    let (session, grant) = (world.sessions()[0].id.clone(), world.grants()[0].id.clone());
    let typed: Vec<&str> = prompted();
    let (servers, looking): (Vec<&str>, Vec<&str>) =
        typed.iter().partition(|line| line.starts_with("servers "));
    assert_eq!(looking.last(), Some(&"stop"), "stopping is the last that is shown");
    for line in looking {
        let id = if line.starts_with("session ") { &session } else { &grant };
        let output = Command::new(programs().join("ironcurtain"))
            .args(words(&line.replace("ID", id)))
            .env("IRONCURTAIN_HOME", world.ours())
            .env("HOME", &world.home.person)
            .current_dir(&world.home.person)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "`ironcurtain {line}`: {complaint}");
        if line.starts_with("grants revoke") {
            assert_eq!(world.grants(), []);
        }
    }
    // Installing and updating need a registry: `installs` does both, with one of its own and with the real ones.
    let expected =
        ["servers catalog", "servers add memory", "servers install memory", "servers update memory"];
    assert_eq!(servers, expected);
}
