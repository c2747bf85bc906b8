//! Tests that changes made by git stay in place, while hooks and redirects to other hooks are quarantined.

use std::{fs, process::Command};

use ironcurtain_sandbox::autostart::Finding;

use crate::scene::{Scene, repository, summarize};

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;

#[test]
fn changes_by_git_stay() {
    for mut scene in [Scene::guarded(), Scene::strict(), Scene::listed()] {
        repository(&scene, "origin");
        scene.open();
        let origin = scene.text("origin");
        scene.git("root", &["clone", "-q", &origin, "clone"]);
        assert_eq!(scene.poll_findings(), []);
        scene.git("root", &["init", "-q", "new"]);
        scene.git("root/new", &["remote", "add", "o", "https://example.org/a.git"]);
        scene.git("root/new", &["config", "user.name", "Me"]);
        scene.git("root/clone", &["checkout", "-qb", "topic"]);
        scene.git("root/clone", &["config", "pull.rebase", "true"]);
        scene.git("root/clone", &["worktree", "add", "-q", "../tree", "main"]);
        assert_eq!(scene.poll_findings(), []);
        scene.git("root", &["init", "-q", "--bare", "bare"]);
        assert_eq!(scene.finish(), []);
        assert_eq!(scene.git("root/tree", &["status", "--porcelain"]), "");
        assert_eq!(scene.git("root/new", &["config", "remote.o.url"]), "https://example.org/a.git\n");
        assert_eq!(scene.git("root/new", &["config", "user.name"]), "Me\n");
        assert_eq!(scene.git("root/clone", &["branch", "--show-current"]), "topic\n");
    }
}

#[test]
fn submodule_stays_and_gitmodules_is_listed() {
    let mut scene = Scene::guarded();
    repository(&scene, "origin");
    repository(&scene, "root/repo");
    scene.open();
    let origin = scene.text("origin");
    scene.git("root/repo", &["submodule", "--quiet", "add", &origin, "sub"]);
    scene.poll_findings();
    let root = scene.root();
    let found = summarize(&root, &scene.finish());
    assert_eq!(found, ["new repo/.gitmodules"]);
    assert_eq!(scene.git("root/repo/sub", &["status", "--porcelain"]), "");
    assert_eq!(scene.git("root/repo", &["submodule", "status"]).trim().split(' ').nth(1), Some("sub"));
}

#[test]
fn planted_hook_is_quarantined_at_once() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let origin = scene.root();
    scene.open();
    scene.git("root", &["init", "-q", "new"]);
    scene.write("root/new/.git/hooks/pre-commit", "#!/bin/sh\ntouch ran\n");
    let found = scene.wait_for_findings();
    assert_eq!(summarize(&origin, &found), ["quarantined new/.git/hooks/pre-commit"]);
    let Finding::Quarantined { moved_to, when, .. } = &found[0] else { panic!() };
    assert_eq!(fs::read_to_string(moved_to).unwrap(), "#!/bin/sh\ntouch ran\n");
    assert_eq!(when, "when you use git in this repository");
    assert!(!scene.exists("root/new/.git/hooks/pre-commit"));
    assert!(scene.exists("root/new/.git/hooks/pre-commit.sample"));
    assert_eq!(scene.finish(), []);
}

#[test]
fn redirects_out_of_the_root_are_quarantined_and_inside_are_checked() {
    let mut scene = Scene::guarded();
    repository(&scene, "elsewhere");
    scene.open();
    let elsewhere = scene.text("elsewhere/.git");
    scene.write("root/out/.git", &format!("gitdir: {elsewhere}\n"));
    scene.write("root/in/.git", "gitdir: ../repo/.git/objects/evil\n");
    scene.write("root/repo/.git/objects/evil/config", "[core]\n\tfsmonitor = evil\n");
    scene.write("root/repo/.git/objects/evil/hooks/pre-commit", "evil");
    let root = scene.root();
    let mut found = scene.wait_for_findings();
    found.extend(scene.finish());
    assert_eq!(
        summarize(&root, &found),
        [
            "quarantined out/.git",
            "quarantined repo/.git/objects/evil/hooks/pre-commit",
            "restored repo/.git/objects/evil/config core.fsmonitor",
        ]
    );
    assert!(scene.exists("root/in/.git"));
}

#[test]
fn husky_files_are_listed_and_its_git_key_is_restored() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    scene.write("root/repo/.husky/pre-commit", "npm test\n");
    scene.write("root/repo/.husky/_/pre-commit", "#!/usr/bin/env sh\n");
    scene.git("root/repo", &["config", "core.hooksPath", ".husky/_"]);
    let root = scene.root();
    let mut found = scene.wait_for_findings();
    found.retain(|finding| !matches!(finding, Finding::AutostartFile { .. }));
    found.extend(scene.finish());
    let husky = ["new repo/.husky/_/pre-commit", "new repo/.husky/pre-commit"];
    assert_eq!(
        summarize(&root, &found),
        [&husky[..], &["restored repo/.git/config core.hookspath"]].concat()
    );
    assert!(scene.exists("root/repo/.husky/_/pre-commit"));
}

#[test]
fn hooks_in_a_configured_folder_count() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.git("root/repo", &["config", "core.hooksPath", ".githooks"]);
    scene.open();
    scene.write("root/repo/.githooks/pre-commit", "evil");
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined repo/.githooks/pre-commit"]);
}

#[test]
fn npm_init_is_listed() {
    let mut scene = Scene::guarded();
    scene.open();
    let npm = Command::new("npm").args(["init", "-y"]).current_dir(scene.at("root")).output().unwrap();
    assert!(npm.status.success(), "{}", String::from_utf8_lossy(&npm.stderr));
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.finish()), ["new package.json"]);
    assert!(scene.read("root/package.json").contains("scripts"));
}

#[test]
fn files_in_an_unchecked_part_of_a_root_are_listed_and_stay() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    scene.git("root/p/q/r/repo", &["config", "core.pager", "mine"]);
    scene.write("root/p/q/r/repo/.git/hooks/pre-commit", "mine");
    scene.write("root/p/q/r/.mcp.json", SERVERS);
    repository(&scene, "root/p/q/r/other");
    scene.open();
    // Git changes a key, and files get hard links, as from a backup program. Neither can be distinguished from changes
    // before the root was opened.
    scene.git("root/p/q/r/repo", &["config", "user.name", "Me"]);
    for linked in ["repo/.git/hooks/pre-commit", ".mcp.json"] {
        let from = scene.at("root/p/q/r").join(linked);
        fs::hard_link(from, scene.at("backup").with_extension(linked.len().to_string())).unwrap();
    }
    // Makes a harmless change, and creates a file that is certainly new.
    scene.git("root/p/q/r/other", &["config", "user.name", "Me"]);
    scene.write("root/p/q/r/other/.git/hooks/post-commit", "evil");
    let root = scene.root();
    let mut found = summarize(&root, &scene.finish());
    found.retain(|found| !found.starts_with("unfinished"));
    let expected = [
        "changed p/q/r/.mcp.json",
        "changed p/q/r/repo/.git/config",
        "changed p/q/r/repo/.git/hooks/pre-commit",
        "quarantined p/q/r/other/.git/hooks/post-commit",
    ];
    assert_eq!(found, expected);
    assert_eq!(scene.git("root/p/q/r/repo", &["config", "core.pager"]), "mine\n");
    assert_eq!(scene.read("root/p/q/r/.mcp.json"), SERVERS);
}

#[test]
fn folder_moved_to_hooks_counts_as_new() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    scene.write("root/p/q/r/old/post-commit", "#!/bin/sh\n");
    fs::remove_dir_all(scene.at("root/p/q/r/repo/.git/hooks")).unwrap();
    scene.open();
    // A change in the folder triggers the check that finds the files.
    scene.write("root/p/q/r/repo/a", "x");
    fs::rename(scene.at("root/p/q/r/old"), scene.at("root/p/q/r/repo/.git/hooks")).unwrap();
    scene.finish();
    assert!(!scene.exists("root/p/q/r/repo/.git/hooks/post-commit"));
}

#[test]
fn fake_repository_hides_nothing() {
    let planted = [
        "src/app/.git/hooks/pre-commit",
        "src/app/.mcp.json",
        "src/logs/.mcp.json",
        "src/objects/info/x/.mcp.json",
        "src/objects/lib/.mcp.json",
        "src/objects/pack/.mcp.json",
        "src/refs/heads/.mcp.json",
        "whole/.git/objects/lib/.mcp.json",
        "whole/.git/x/.mcp.json",
    ];
    // Runs once with events and once only with the final check.
    for is_seen in [true, false] {
        let mut scene = Scene::guarded();
        fs::create_dir_all(scene.at("root/src/app")).unwrap();
        repository(&scene, "root/whole");
        scene.open();
        fs::write(scene.at("root/src/HEAD"), "").unwrap();
        for folder in ["objects", "refs"] {
            fs::create_dir(scene.at("root/src").join(folder)).unwrap();
        }
        if is_seen {
            assert_eq!(scene.wait_for_findings(), []);
            // A folder that is moved away and back is checked again.
            fs::rename(scene.at("root/src"), scene.at("root/t")).unwrap();
            fs::rename(scene.at("root/t"), scene.at("root/src")).unwrap();
            assert_eq!(scene.wait_for_findings(), []);
        }
        for path in planted {
            scene.write(&format!("root/{path}"), SERVERS);
        }
        let root = scene.root();
        let mut found = if is_seen { scene.wait_for_findings() } else { vec![] };
        if is_seen {
            let all: Vec<String> = planted.iter().map(|path| format!("quarantined {path}")).collect();
            assert_eq!(summarize(&root, &found), all);
        }
        found.extend(scene.finish());
        assert_eq!(found.len(), planted.len(), "{found:?}");
        assert!(planted.iter().all(|path| !scene.exists(&format!("root/{path}"))));
        assert_eq!(scene.git("root/whole", &["status", "--porcelain"]), "");
    }
}

#[test]
fn object_stores_are_not_checked_or_counted() {
    let mut scene = Scene::guarded();
    // Creates more names than the baseline walk reads.
    for number in 0..21 {
        let bare = format!("root/{number}");
        scene.git("root", &["init", "-q", "--bare", "--template=", &number.to_string()]);
        for folder in 0..=255 {
            fs::create_dir(scene.at(&format!("{bare}/objects/{folder:02x}"))).unwrap();
        }
    }
    repository(&scene, "root/repo");
    for folder in ["refs/heads", "logs/refs/heads"] {
        fs::create_dir(scene.at(&format!("root/repo/.git/{folder}/topic"))).unwrap();
    }
    for branch in 0..5_100 {
        fs::write(scene.at(&format!("root/repo/.git/refs/heads/{branch}")), "").unwrap();
    }
    scene.open();
    assert_eq!(scene.poll_findings(), []);
    scene.write("root/repo/new", "text");
    for arguments in
        [&["add", "new"][..], &["commit", "-qm", "b"], &["push", "-q", "../0", "HEAD:refs/heads/b"]]
    {
        scene.git("root/repo", arguments);
    }
    assert_eq!(scene.poll_findings(), []);
    assert_eq!(scene.finish(), []);
}
