//! Files planted by a server never run, during the session or later. The user's own files do run.

use super::{end_session, entry_for, git, grant_folder_of, repository, world_with_guarded_git_config};
use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::Machine;
use crate::world::eventually;
use ironcurtain_protocol::AutostartFileState;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn hook(path: &Path, says: &str) {
    fs::write(path, format!("#!/bin/sh\n{says}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn planted_files_do_not_run_and_user_hooks_do() {
    let world = world_with_guarded_git_config();
    let repo = repository(&world);
    let above = repo.parent().unwrap().to_path_buf();
    fs::write(above.join("plan"), "scribbled").unwrap();
    let (evil, own) = (world.path("evil"), world.path("own"));
    hook(&repo.join(".git/hooks/post-commit"), &format!("echo ran >> '{}'", own.display()));
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &above.join("plan"));

    let bad = format!("touch {}", evil.display());
    // The file is written next to an existing hook, and over an existing hook.
    for name in ["pre-commit", "post-commit"] {
        let plant =
            format!("printf '#!/bin/sh\\n{bad}\\n' > .git/hooks/{name} && chmod +x .git/hooks/{name}");
        client.run(&repo, &plant).refused("Read-only file system");
    }
    for (key, value) in [("user.name", "Lovelace"), ("alias.st", &format!("!{bad}"))] {
        configure(&mut client, &repo, key, value);
    }
    for key in ["core.fsmonitor", "core.pager", "diff.external"] {
        configure(&mut client, &repo, key, &format!("{bad}; true"));
    }
    client.run(&repo, &format!("echo '{}' > .mcp.json", mcp(&bad))).ok();
    client.run(&repo, &format!("echo '{bad}' > .envrc")).ok();
    // The file is written to a new repository.
    let fresh = format!(
        "git init -q fresh && printf '#!/bin/sh\\n{bad}\\n' > new && chmod +x new && mv new fresh/.git/hooks/pre-commit"
    );
    client.run(&above, &fresh).ok();

    let planted = above.join("fresh/.git/hooks/pre-commit");
    eventually("the planted hook is gone", TIMEOUT, || !planted.exists());
    eventually("the planted server is gone", TIMEOUT, || !repo.join(".mcp.json").exists());
    eventually("the git keys are restored", TIMEOUT, || {
        !fs::read_to_string(repo.join(".git/config")).unwrap().contains("evil")
    });
    // The session is still open.
    git(&world, &repo, &["status"]);
    git(&world, &repo, &["commit", "-q", "--allow-empty", "-m", "by the person"]);
    commit_in(&world, &above.join("fresh"));
    let record = end_session(&world, client);
    // The session has ended.
    git(&world, &repo, &["status"]);
    git(&world, &repo, &["diff", "HEAD"]);
    git(&world, &repo, &["commit", "-q", "--allow-empty", "-m", "by the person again"]);
    commit_in(&world, &above.join("fresh"));
    assert!(!evil.exists(), "{record:?}");
    assert_eq!(fs::read_to_string(&own).unwrap(), "ran\nran\n");
    assert_eq!(git(&world, &repo, &["config", "user.name"]), "Lovelace\n");

    for path in [&planted, &repo.join(".mcp.json")] {
        let file = entry_for(&record, path);
        assert_eq!(file.state, AutostartFileState::Quarantined, "{file:?}");
        let moved_to = file.moved_to.as_ref().unwrap();
        assert!(Path::new(moved_to).starts_with(world.home.sandboxes().join("quarantine")), "{moved_to}");
        assert!(fs::read_to_string(moved_to).unwrap().contains("evil"));
    }
    let config = entry_for(&record, &repo.join(".git/config"));
    assert_eq!(config.state, AutostartFileState::PutBack);
    for key in ["core.fsmonitor", "core.pager", "alias.st", "diff.external"] {
        assert!(world.log().contains(key), "{key} is not recorded");
    }
    // direnv runs the file only after the user allows it.
    assert_eq!(entry_for(&record, &repo.join(".envrc")).state, AutostartFileState::Undecided);
    assert!(
        world.log().contains(r#""event":"file-put-back""#)
            && world.log().contains(r#""event":"file-quarantined""#)
    );
}

/// Sets a git key with git. Retries while the watcher is restoring another key.
fn configure(client: &mut Client, repo: &Path, key: &str, value: &str) {
    client.run(repo, &format!("until git config {key} '{value}' 2> /dev/null; do sleep 0.01; done")).ok();
}

fn commit_in(world: &crate::world::World, dir: &Path) {
    let by = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    git(world, dir, &[&by[..], &["commit", "-q", "--allow-empty", "-m", "by the person"]].concat());
}

fn mcp(command: &str) -> Value {
    json!({ "mcpServers": { "x": { "command": "sh", "args": ["-c", command] } } })
}

#[test]
fn files_planted_before_kill_are_scanned_at_next_start() {
    let mut machine = Machine::new(|w| hostile::install_contained(w, &json!({ "gitConfig": "guarded" })));
    let plan = machine.file("work/plan", "scribbled");
    machine.start();
    let mut client = machine.connect();
    let call = client.begin_call("change", json!({ "path": plan }));
    machine.wait_for_output("Your answer: ");
    // Answer 5 allows the folder for this session.
    machine.types("5");
    client.outcome(call).ok();
    let work = plan.parent().unwrap();
    client.run(work, "git init -q repo").ok();
    let session = machine.only_session();
    // From here on, no watcher is running.
    let plant = "(while ! [ -e go ]; do sleep 0.01; done; cd repo; echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
        git config core.fsmonitor evil; echo all: > Makefile; touch ../done) > /dev/null 2>&1 &";
    client.run(work, plant).ok();
    machine.freeze();
    fs::write(work.join("go"), "").unwrap();
    eventually("the file is planted", TIMEOUT, || work.join("done").exists());
    let below = machine.kill();
    machine.assert_clean(&below);
    let (planted, makefile) = (work.join("repo/.git/hooks/pre-commit"), work.join("repo/Makefile"));
    assert!(planted.exists() && makefile.exists());

    machine.start();
    eventually("the planted hook is gone", TIMEOUT, || !planted.exists());
    assert!(makefile.exists());
    let shown = || String::from_utf8(machine.command(&["session", &session]).stdout).unwrap();
    eventually("the file is in the session's list", TIMEOUT, || {
        let shown = shown();
        shown.contains("pre-commit") && shown.contains("Makefile")
    });
    assert!(shown().contains("left 1 file that can run code later"), "{}", shown());
    assert!(!fs::read_to_string(work.join("repo/.git/config")).unwrap().contains("evil"));
    let log = fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    for event in ["file-quarantined", "file-put-back", "file-left"] {
        let about = |line: &&str| line.contains(&format!(r#""event":"{event}""#)) && line.contains(&session);
        assert_eq!(log.lines().filter(about).count(), 1, "{event}: {log}");
    }
    machine.verify();
    drop(client);
}
