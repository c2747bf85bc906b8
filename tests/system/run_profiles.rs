//! Run profiles: they give an agent the access that it needs from the start, and nothing else.

use crate::runs::Shell;
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{GrantView, Reply, Request};
use serde_json::{Value, json};
use std::fs::{Permissions, read_to_string, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Path of an installed `claude` in the user's own Node.js installation.
const INSTALLED: &str = "node/lib/node_modules/@anthropic-ai/claude-code/bin/claude";

/// Creates a test environment with a shell installed in place of Claude Code.
fn world() -> World {
    let world = World::new();
    world.file("project/own", "own\n");
    world.file(".claude.json", "{}");
    world.file(".claude/.credentials.json", "my login\n");
    world.file(".claude/settings.json", "{}");
    world.file(".codex/auth.json", "another login\n");
    world.file(".gitconfig", "[user]\n\tname = Me\n");
    world.file(".ssh/id", "my key\n");
    script(&world, INSTALLED);
    std::fs::create_dir_all(world.path("node/bin")).unwrap();
    std::os::unix::fs::symlink(world.path(INSTALLED), world.path("node/bin/claude")).unwrap();
    world
}

fn script(world: &World, below: &str) {
    let file =
        world.file(below, "#!/bin/sh\ncase \"$1\" in --mcp-config=*) shift;; esac\nexec /bin/sh \"$@\"\n");
    set_permissions(file, Permissions::from_mode(0o755)).unwrap();
}

fn run(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("run").args(arguments).current_dir(world.path("project"));
    command.env("IRONCURTAIN_HOME", world.ours()).env("HOME", &world.home.user_home);
    command.env("PATH", format!("{}:/usr/bin:/bin", world.path("node/bin").display()));
    command.env("ANTHROPIC_API_KEY", "for the agent").env("OTHER_TOKEN", "for others");
    command
}

fn output(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = run(world, arguments).output().unwrap();
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn grant(world: &World, below: &str) -> GrantView {
    let path = world.path(below);
    let found = world.grants().into_iter().find(|grant| Path::new(&grant.path) == path);
    found.unwrap_or_else(|| panic!("no grant of {below}: {:?}", world.grants()))
}

fn revoke(world: &World, below: &str) {
    let reply = world.request(Request::Revoke { grant: grant(world, below).id });
    assert!(matches!(reply, Reply::Revoked { .. }), "{reply:?}");
}

#[test]
fn an_agent_has_its_settings_and_login_and_no_others() {
    let world = world();
    let mut shell = Shell::of(&mut run(&world, &["--", "claude"]));
    let said = shell.run("cat ~/.claude.json ~/.claude/.credentials.json ~/.gitconfig");
    assert_eq!(said, "{}my login\n[user]\n\tname = Me\nstatus 0\n");
    for other in [".codex/auth.json", ".ssh/id"] {
        let said = shell.run(&format!("cat ~/{other}"));
        assert!(said.contains("No such file or directory"), "{said}");
    }
    // Agents replace the file this way: they create a lock that other programs see, and rename a new file.
    assert_eq!(shell.run("mkdir ~/.claude.json.lock"), "status 0\n");
    assert!(world.path(".claude.json.lock").is_dir());
    let replace = "echo new > ~/.claude.json.tmp.7 && mv ~/.claude.json.tmp.7 ~/.claude.json";
    assert_eq!(shell.run(&format!("{replace} && rmdir ~/.claude.json.lock")), "status 0\n");
    assert_eq!(read_to_string(world.path(".claude.json")).unwrap(), "new\n");
    assert!(!world.path(".claude.json.lock").exists() && !world.path(".claude.json.tmp.7").exists());
    assert_eq!(shell.run("echo more > ~/.claude/settings.json && mkdir ~/.claude/projects"), "status 0\n");
    assert_eq!(read_to_string(world.path(".claude/settings.json")).unwrap(), "more\n");
    assert!(world.path(".claude/projects").is_dir());
    assert_eq!(shell.run("echo $ANTHROPIC_API_KEY-$OTHER_TOKEN"), "for the agent-\nstatus 0\n");
    assert_eq!(world.user.count(), 0);
    // Other files raise questions as usual, and git's configuration is read-only.
    world.file("docs/notes", "notes");
    assert!(shell.run("cat ~/docs/notes").contains("Permission denied"));
    assert!(shell.run("echo x >> ~/.gitconfig").contains("Permission denied"));
    assert_eq!(world.user.asked().len(), 2);
    assert_eq!(read_to_string(world.path(".gitconfig")).unwrap(), "[user]\n\tname = Me\n");
    assert!(shell.run("echo x > ~/node/bin/x").contains("Permission denied"));
    let installed = shell.run(&format!("echo x > ~/{INSTALLED}"));
    assert!(installed.contains("Read-only file system"), "{installed}");
}

#[test]
fn profile_grants_are_listed_recorded_and_revocable() {
    let world = world();
    let mut shell = Shell::of(&mut run(&world, &["--", "claude"]));
    assert_eq!(shell.run("cat ~/.claude/.credentials.json ~/.claude.json"), "my login\n{}status 0\n");
    let granted = |below: &str| {
        let grant = grant(&world, below);
        assert_eq!(
            (grant.server.as_str(), grant.provenance.as_str()),
            ("run:claude", "the run profile `claude`")
        );
        assert!(grant.session.is_some());
        (grant.kind, grant.access.join(" "))
    };
    let all = || "read write delete".to_owned();
    assert_eq!(granted(".claude"), ("folder".to_owned(), all()));
    assert_eq!(granted(".claude.json"), ("file".to_owned(), all()));
    assert_eq!(granted(".gitconfig"), ("file".to_owned(), "read".to_owned()));
    let log = world.log();
    assert!(log.contains("run:claude was started with the profile `claude`"), "{log}");
    assert!(log.contains("the run profile `claude`, this session"), "{log}");
    // Revoking unmounts the folder and protects the credentials in it again.
    revoke(&world, ".claude");
    let said = shell.run("cat ~/.claude/.credentials.json");
    assert!(said.contains("Permission denied"), "{said}");
    // `.claude.json` also contains credentials. It is protected too, although the grant for it remains.
    let said = shell.run("cat ~/.claude.json");
    assert!(said.contains("Permission denied"), "{said}");
    assert_eq!(world.user.count(), 0, "protected files are never asked about");
    assert_eq!(shell.run("cat ~/.gitconfig own"), "[user]\n\tname = Me\nown\nstatus 0\n");
    revoke(&world, ".gitconfig");
    assert!(shell.run("cat ~/.gitconfig").contains("Permission denied"));
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(shell.exit(), Some(0));
    eventually("the grants end with the run", TIMEOUT, || world.grants().is_empty());
}

#[test]
fn revoking_a_folder_in_use_ends_the_run() {
    let world = world();
    let mut shell = Shell::of(&mut run(&world, &["--", "claude"]));
    assert_eq!(shell.run("exec 7< ~/.claude/.credentials.json"), "status 0\n");
    revoke(&world, ".claude");
    assert_eq!(shell.exit(), Some(137));
}

#[test]
fn a_project_program_is_not_mistaken_for_the_agent() {
    let world = world();
    let fake = "node_modules/@anthropic-ai/claude-code/bin/claude";
    script(&world, &format!("project/{fake}"));
    let fake = format!("./{fake}");
    let mut shell = Shell::of(&mut run(&world, &["--", &fake]));
    let said = shell.run("cat ~/.claude/.credentials.json");
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!((world.grants().len(), world.user.count()), (1, 0), "{:?}", world.grants());
    assert_eq!(shell.exit(), Some(0));
    // The user can state that the program is the agent.
    let mut shell = Shell::of(&mut run(&world, &["--profile", "claude", "--", &fake]));
    assert_eq!(shell.run("cat ~/.claude/.credentials.json"), "my login\nstatus 0\n");
    drop(shell);
    // The user can choose a profile for any program. The agent then starts without a question, although it is in the
    // home directory.
    let mut shell = Shell::of(&mut run(&world, &["--profile", "plain", "--", "claude"]));
    let said = shell.run("cat ~/.claude/.credentials.json");
    assert!(said.contains("No such file or directory"), "{said}");
}

#[test]
fn user_profiles_extend_shipped_ones_and_open_nothing_protected() {
    let world = world();
    world.file("docs/notes", "notes\n");
    let folder = world.home.run_profiles();
    std::fs::create_dir(&folder).unwrap();
    let own = |profile: Value| std::fs::write(folder.join("claude.json"), profile.to_string()).unwrap();
    own(
        json!({ "schemaVersion": 1, "name": "claude", "read": ["~/docs/"], "env": ["OTHER_*"], "setEnv": { "MINE": "1" } }),
    );
    let mut shell = Shell::of(&mut run(&world, &["--", "claude"]));
    let said = shell.run("cat ~/docs/notes ~/.claude/.credentials.json && echo $OTHER_TOKEN $MINE");
    assert_eq!(said, "notes\nmy login\nfor others 1\nstatus 0\n");
    assert!(shell.run("echo x > ~/docs/notes").contains("Permission denied"));
    drop(shell);
    for (profile, problem) in [
        (
            json!({ "schemaVersion": 1, "name": "claude", "read": ["~/.ssh/"] }),
            "`read`: `~/.ssh/` is protected",
        ),
        (
            json!({ "schemaVersion": 1, "name": "claude", "settings": ["~/.codex/"] }),
            "`settings`: `~/.codex/` contains the protected",
        ),
        (
            json!({ "schemaVersion": 1, "name": "claude", "logins": ["~/.ssh"] }),
            "claude.json`, line 1: `logins`: only shipped",
        ),
        (json!({ "schemaVersion": 1, "name": "claude", "reads": [] }), "unknown field `reads`"),
    ] {
        own(profile);
        for arguments in [&["--", "claude"][..], &["--check", "--", "claude"]] {
            let (code, said) = output(&world, arguments);
            assert!(code != Some(0) && said.contains(problem), "{code:?} {said}");
        }
    }
    assert_eq!(read_to_string(world.path(".ssh/id")).unwrap(), "my key\n");
}

/// Returns the argument that offers the built-in server to Claude Code.
fn offered() -> String {
    let shim = programs().join("ironcurtain-shim");
    let server = json!({ "command": shim, "args": ["--server", "ironcurtain"] });
    format!("--mcp-config={}", json!({ "mcpServers": { "ironcurtain-access": server } }))
}

#[test]
fn check_prints_the_access_of_a_run_and_runs_nothing() {
    let world = world();
    let (code, said) = output(&world, &["--check", "--", "claude", "-c", "touch started"]);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "profile: claude (Claude Code, measured with 2.1.197)".to_owned(),
        format!("command: claude {} -c touch started", offered()),
        format!("working folder: {}", world.path("project").display()),
        format!("changes: {}", world.path(".claude").display()),
        format!("of these, logins: {}", world.path(".claude/.credentials.json").display()),
        format!("reads: {}", world.path(".gitconfig").display()),
        format!("runs programs in: {}", world.path("node/lib/node_modules").display()),
        "hosts: api.anthropic.com".to_owned(),
        "/dev/fuse works: other files are asked about".to_owned(),
    ] {
        assert!(said.lines().any(|found| found == line), "{line}\n{said}");
    }
    assert!(said.contains("ANTHROPIC_API_KEY") && !said.contains("OTHER_TOKEN"), "{said}");
    assert!(!said.contains("for the agent"), "values are not printed: {said}");
    assert!(!world.path("project/started").exists() && world.sessions().is_empty());
    // The user's settings enable the agent's own sandbox, which cannot start inside IronCurtain's.
    world.file(".claude/settings.json", r#"{ "sandbox": { "enabled": true } }"#);
    let (_, said) = output(&world, &["--check", "--json", "--", "claude", "go"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    let argv = json!(["claude", "--settings", r#"{"sandbox":{"enabled":false}}"#, offered(), "go"]);
    assert_eq!((&value["argv"], &value["fuse"]), (&argv, &json!(true)), "{said}");
    let (code, said) = output(&world, &["--check", "--profile", "missing", "--", "claude"]);
    assert!(code != Some(0) && said.contains("unknown run profile `missing`"), "{said}");
}

#[test]
fn rules_can_match_a_run_by_its_program() {
    let world = World::with(|prepared| {
        let rule = |name: &str, server: &str, within: &str, then: &str| {
            json!({ "name": name, "description": "d", "principle": "p", "reason": "r", "then": then,
                "if": { "server": [server], "paths": { "roles": ["read-path"], "within": within } } })
        };
        let rules = [
            rule("open", "run:claude", "~/open", "allow"),
            rule("shut", "run:claude", "~/shut", "deny"),
            rule("other", "run:sh", "~/other", "allow"),
            json!({ "name": "ask", "description": "d", "principle": "p", "reason": "r", "then": "escalate", "if": {} }),
        ];
        let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
        std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    });
    world.file("project/own", "own");
    for name in ["open", "shut", "other"] {
        world.file(&format!("{name}/file"), name);
    }
    script(&world, INSTALLED);
    let program = world.path(INSTALLED);
    let mut shell = Shell::of(&mut run(&world, &["--", program.to_str().unwrap()]));
    assert_eq!(shell.run("cat ~/open/file"), "openstatus 0\n");
    assert!(shell.run("cat ~/shut/file").contains("Permission denied"));
    assert_eq!(world.user.count(), 0);
    assert!(shell.run("cat ~/other/file").contains("Permission denied"));
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1, "the rule for another run does not apply");
    assert_eq!(paths(&asked[0]), [world.path("other/file").to_str().unwrap()]);
}

#[test]
fn a_profile_is_derived_from_the_users_approvals() {
    let world = world();
    world.file(".tool/a", "a\n");
    world.file("docs/notes", "notes\n");
    let proposal = world.path("docs/tool.json");
    let learn = ["--learn", proposal.to_str().unwrap(), "--", "sh"];
    let mut shell = Shell::of(&mut run(&world, &learn));
    for command in ["cat ~/.tool/a", "echo b > ~/.tool/b", "cat ~/docs/notes"] {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let said = shell.run(command);
        assert!(said.ends_with("status 0\n"), "{said}");
    }
    assert!(shell.run("cat ~/node/bin/claude").contains("Permission denied"));
    assert_eq!(world.user.asked().len(), 4);
    shell.run("true");
    assert_eq!(shell.exit(), Some(0));
    let written: Value = serde_json::from_str(&read_to_string(&proposal).unwrap()).unwrap();
    let expected =
        json!({ "schemaVersion": 1, "name": "tool", "settings": ["~/.tool/"], "read": ["~/docs/notes"] });
    assert_eq!(written, expected);
    // With the proposed profile, no questions are asked.
    let mut shell = Shell::of(&mut run(&world, &["--profile", proposal.to_str().unwrap(), "--", "sh"]));
    assert_eq!(shell.run("cat ~/.tool/a ~/docs/notes && echo c > ~/.tool/b"), "a\nnotes\nstatus 0\n");
    assert_eq!(world.user.count(), 0);
    // An existing file is never replaced.
    let (code, said) = output(&world, &learn);
    assert!(code != Some(0) && said.contains("already exists"), "{said}");
}

#[test]
fn each_change_to_git_configuration_requires_approval() {
    let world = world();
    let mut shell = Shell::of(&mut run(&world, &["--", "claude"]));
    let set = |name: &str| format!("git config --global user.name {name}");
    let asked = |world: &World| {
        let asked = world.user.asked();
        for offer in asked.iter().flat_map(|question| &question.offers) {
            assert!(offer.reach == Reach::Paths || offer.lifetimes == [Lifetime::Once], "{offer:?}");
        }
        asked.last().map(|question| (paths(question)[0].to_owned(), question.offers.clone()))
    };
    // Git creates a lock file and renames it.
    (0..2).for_each(|_| world.user.will(Next::Allow(Reach::Paths, Lifetime::Once)));
    assert_eq!(shell.run(&set("You")), "status 0\n");
    world.user.forget();
    assert!(read_to_string(world.path(".gitconfig")).unwrap().contains("name = You"));
    let (path, offers) = asked(&world).unwrap();
    assert_eq!(Path::new(&path), world.path(".gitconfig"));
    assert!(offers.iter().all(|offer| offer.lifetimes == [Lifetime::Once]), "{offers:?}");
    let denied = shell.run(&set("Nobody"));
    assert!(denied.contains("Permission denied") || denied.contains("could not"), "{denied}");
    assert!(!denied.ends_with("status 0\n"), "{denied}");
    assert!(read_to_string(world.path(".gitconfig")).unwrap().contains("name = You"));
    assert_eq!(world.user.asked().len(), 1);
}
