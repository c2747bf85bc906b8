//! A folder to which a run has full access is mounted while the run lasts.

use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

fn is_mounted(shell: &mut Shell, path: &Path) -> bool {
    shell.run(&format!("grep -qF ' {} ' /proc/self/mountinfo", path.display())) == "status 0\n"
}

/// Starts a shell with `~/docs` granted and mounted. IronCurtain's output goes to the file `said`.
fn mounted(world: &World) -> Shell {
    world.file("docs/a", "a\n");
    world.file("project/own", "own");
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(["run", "--verbose", "--", "/bin/sh"]).current_dir(world.path("project"));
    command.stderr(File::create(world.path("said")).unwrap());
    let mut shell = Shell::of(command.env("IRONCURTAIN_HOME", world.ours()));
    assert!(!is_mounted(&mut shell, &world.path("docs")));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(shell.run("echo new > ~/docs/new"), "status 0\n");
    let asked = world.user.asked();
    let offer = asked[0].offers.iter().find(|offer| offer.reach == Reach::Folders).unwrap();
    assert!(
        offer.sentence.contains("may read, write and delete everything in ~/docs and below"),
        "{}",
        offer.sentence
    );
    becomes_mounted(&mut shell, &world.path("docs"));
    shell
}

fn becomes_mounted(shell: &mut Shell, path: &Path) {
    eventually("the folder is mounted", TIMEOUT, || is_mounted(shell, path));
}

#[test]
fn a_writable_folder_is_mounted_until_revoked() {
    let world = World::new();
    let mut shell = mounted(&world);
    assert_eq!(
        shell.run("cd ~/docs && cat new && rm new && mkdir -p d/e && echo x > d/e/f; cd"),
        "new\nstatus 0\n"
    );
    assert_eq!(std::fs::read_to_string(world.path("docs/d/e/f")).unwrap(), "x\n");
    assert!(!world.path("docs/new").exists());
    assert_eq!(world.user.count(), 0);
    world.revoke_only_grant();
    assert!(!is_mounted(&mut shell, &world.path("docs")));
    let denied = shell.run("cat ~/docs/a");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(world.user.asked().len(), 1);
    // The folder is mounted again after another approval.
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(shell.run("echo more >> ~/docs/a"), "status 0\n");
    becomes_mounted(&mut shell, &world.path("docs"));
    assert_eq!(shell.run("cat ~/docs/a"), "a\nmore\nstatus 0\n");
    assert_eq!(shell.exit(), Some(0));
}

#[test]
fn a_run_that_holds_a_revoked_mount_is_ended() {
    for hold in ["cd ~/docs", "exec 7< ~/docs/a"] {
        let world = World::new();
        let mut shell = mounted(&world);
        assert_eq!(shell.run(hold), "status 0\n");
        world.revoke_only_grant();
        assert_eq!(shell.exit(), Some(137), "{hold}");
        let said = std::fs::read_to_string(world.path("said")).unwrap();
        let why = format!("sh still used {} after it was revoked", world.path("docs").display());
        assert_eq!(
            said.lines().filter(|line| *line == format!("ironcurtain: the run was cut off: {why}")).count(),
            1,
            "{said}"
        );
    }
}

#[test]
fn autostart_files_in_a_mounted_folder_are_protected() {
    let world = World::new();
    let tasks = world.file("docs/.vscode/tasks.json", "{}");
    world.file("docs/repo/a", "a");
    let init = Command::new("git").args(["init", "-q"]).current_dir(world.path("docs/repo")).status();
    assert!(init.unwrap().success());
    let hook = world.file("docs/repo/.git/hooks/pre-commit", "#!/bin/sh\n");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut shell = mounted(&world);
    for (file, why) in [
        ("~/docs/.vscode/tasks.json", "Device or resource busy"),
        ("~/docs/repo/.git/hooks/pre-commit", "Read-only file system"),
    ] {
        let refused = shell.run(&format!("echo x > {file}"));
        assert!(refused.contains("Read-only file system"), "{file}: {refused}");
        let refused = shell.run(&format!("rm -f {file}"));
        let path = file.replace('~', world.home.user_home.to_str().unwrap());
        assert_eq!(refused, format!("rm: cannot remove '{path}': {why}\nstatus 1\n"));
    }
    assert_eq!(std::fs::read_to_string(&tasks).unwrap(), "{}");
    assert_eq!(std::fs::read_to_string(&hook).unwrap(), "#!/bin/sh\n");
    // A new autostart file is moved away, and other new files stay.
    let new = "~/docs/repo/.git/hooks/post-commit";
    shell.run(&format!("echo '#!/bin/sh' > {new} && chmod +x {new}; echo x > ~/docs/plain"));
    let new = world.path("docs/repo/.git/hooks/post-commit");
    eventually("the new file is in quarantine", TIMEOUT, || !new.exists());
    assert_eq!(std::fs::read_to_string(world.path("docs/plain")).unwrap(), "x\n");
    assert_eq!(world.user.count(), 0);
}

#[test]
fn permission_for_another_file_does_not_cover_an_autostart_file() {
    let world = World::new();
    world.file("docs/.vscode/tasks.json", "{}");
    world.file("docs/plain", "old\n");
    world.file("project/own", "own");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    assert_eq!(shell.run("echo new > ~/docs/plain"), "status 0\n");
    let denied = shell.run("echo x > ~/docs/.vscode/tasks.json");
    assert!(denied.contains("Permission denied"), "{denied}");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].offers.iter().all(|offer| offer.lifetimes == [Lifetime::Once]), "{:?}", asked[1].offers);
    assert_eq!(std::fs::read_to_string(world.path("docs/plain")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(world.path("docs/.vscode/tasks.json")).unwrap(), "{}");
}

#[test]
fn a_granted_folder_with_a_denied_path_is_not_mounted() {
    let world = World::with(|prepared| {
        let deny = json!({ "name": "shut", "description": "d", "principle": "p", "reason": "r", "then": "deny",
            "if": { "paths": { "roles": ["write-path", "delete-path"], "within": "~/docs/shut" } } });
        let ask = json!({ "name": "ask", "description": "d", "principle": "p", "reason": "r", "then": "escalate", "if": {} });
        let policy = json!({ "schemaVersion": 1, "rules": [deny, ask] }).to_string();
        std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    });
    for file in ["docs/a", "docs/shut/b", "open/c", "project/own"] {
        world.file(file, "old\n");
    }
    let mut shell = Shell::start(&world, &world.path("project"));
    for folder in ["docs", "open"] {
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        assert_eq!(shell.run(&format!("echo new > ~/{folder}/new")), "status 0\n");
    }
    becomes_mounted(&mut shell, &world.path("open"));
    assert!(!is_mounted(&mut shell, &world.path("docs")));
    assert_eq!(shell.run("cat ~/docs/shut/b; echo new > ~/docs/a"), "old\nstatus 0\n");
    let denied = shell.run("echo x > ~/docs/shut/b");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(std::fs::read_to_string(world.path("docs/shut/b")).unwrap(), "old\n");
}

#[test]
fn a_granted_folder_that_is_replaced_is_unmounted() {
    let world = World::new();
    let mut shell = mounted(&world);
    std::fs::rename(world.path("docs"), world.path("moved")).unwrap();
    std::fs::create_dir(world.path("docs")).unwrap();
    std::fs::write(world.path("docs/a"), "other\n").unwrap();
    eventually("the folder at its path is shown", TIMEOUT, || {
        shell.run("cat ~/docs/a") == "other\nstatus 0\n"
    });
    let moved = shell.run("cat ~/moved/a");
    assert!(moved.contains("Permission denied"), "{moved}");
}

#[test]
fn a_permanently_granted_folder_is_mounted_from_the_start() {
    let world = World::new();
    world.file("docs/a", "a\n");
    world.file("project/own", "own");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Always));
    let mut shell = Shell::start(&world, &world.path("project"));
    assert_eq!(shell.run("echo new > ~/docs/new"), "status 0\n");
    assert_eq!(shell.exit(), Some(0));
    let mut shell = Shell::start(&world, &world.path("project"));
    becomes_mounted(&mut shell, &world.path("docs"));
    assert_eq!(shell.run("cat ~/docs/new && rm ~/docs/new"), "new\nstatus 0\n");
    assert_eq!(world.user.asked().len(), 1);
    let grant = world.grants().pop().unwrap();
    let reply = world.request(Request::Revoke { grant: grant.id });
    assert!(matches!(reply, Reply::Revoked { .. }), "{reply:?}");
    assert!(!is_mounted(&mut shell, &world.path("docs")));
}
