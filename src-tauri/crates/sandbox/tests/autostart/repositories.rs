//! Changes by git stay; those that make it run something do not.

use std::{fs, process::Command};

use ironcurtain_sandbox::autostart::{Finding, GitConfig, Rules};

use crate::scene::{Scene, short};

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;

fn repository(scene: &Scene, path: &str) {
    fs::create_dir_all(scene.at(path)).unwrap();
    scene.git(path, &["init", "-q", "-b", "main"]);
    scene.write(&format!("{path}/a.txt"), "a");
    scene.git(path, &["add", "-A"]);
    scene.git(path, &["commit", "-qm", "a"]);
}

#[test]
fn what_git_does_by_itself_stays() {
    for mut scene in [Scene::guarded(), Scene::strict(), Scene::new(Rules::default())] {
        repository(&scene, "origin");
        scene.open();
        let origin = scene.text("origin");
        scene.git("root", &["clone", "-q", &origin, "clone"]);
        assert_eq!(scene.now(), []);
        scene.git("root", &["init", "-q", "new"]);
        scene.git("root/new", &["remote", "add", "o", "https://example.org/a.git"]);
        scene.git("root/new", &["config", "user.name", "Me"]);
        scene.git("root/clone", &["checkout", "-qb", "topic"]);
        scene.git("root/clone", &["config", "pull.rebase", "true"]);
        scene.git("root/clone", &["worktree", "add", "-q", "../tree", "main"]);
        assert_eq!(scene.now(), []);
        scene.git("root", &["init", "-q", "--bare", "bare"]);
        assert_eq!(scene.finish(), []);
        assert_eq!(scene.git("root/tree", &["status", "--porcelain"]), "");
        assert_eq!(scene.git("root/new", &["config", "remote.o.url"]), "https://example.org/a.git\n");
        assert_eq!(scene.git("root/new", &["config", "user.name"]), "Me\n");
        assert_eq!(scene.git("root/clone", &["branch", "--show-current"]), "topic\n");
    }
}

#[test]
fn a_submodule_stays_and_its_list_is_listed() {
    let mut scene = Scene::guarded();
    repository(&scene, "origin");
    repository(&scene, "root/repo");
    scene.open();
    let origin = scene.text("origin");
    scene.git("root/repo", &["submodule", "--quiet", "add", &origin, "sub"]);
    scene.now();
    let root = scene.root();
    let found = short(&root, &scene.finish());
    assert_eq!(found, ["new repo/.gitmodules"]);
    assert_eq!(scene.git("root/repo/sub", &["status", "--porcelain"]), "");
    assert_eq!(scene.git("root/repo", &["submodule", "status"]).trim().split(' ').nth(1), Some("sub"));
}

#[test]
fn a_planted_hook_is_gone_when_it_is_seen() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let origin = scene.root();
    scene.open();
    scene.git("root", &["init", "-q", "new"]);
    scene.write("root/new/.git/hooks/pre-commit", "#!/bin/sh\ntouch ran\n");
    let found = scene.happened();
    assert_eq!(short(&origin, &found), ["quarantined new/.git/hooks/pre-commit"]);
    let Finding::Quarantined { moved_to, when, .. } = &found[0] else { panic!() };
    assert_eq!(fs::read_to_string(moved_to).unwrap(), "#!/bin/sh\ntouch ran\n");
    assert_eq!(when, "when you use git in this repository");
    assert!(!scene.exists("root/new/.git/hooks/pre-commit"));
    assert!(scene.exists("root/new/.git/hooks/pre-commit.sample"));
    assert_eq!(scene.finish(), []);
}

#[test]
fn keys_that_make_git_run_something_are_put_back_and_others_stay() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.git("root/repo", &["config", "core.editor", "mine"]);
    scene.open();
    scene.git("root/repo", &["config", "core.fsmonitor", "evil"]);
    scene.git("root/repo", &["config", "core.editor", "evil"]);
    scene.git("root/repo", &["config", "user.email", "me@example.org"]);
    scene.git("root/repo", &["config", "include.path", "../evil"]);
    let root = scene.root();
    let found = short(&root, &scene.happened());
    assert_eq!(found, ["restored repo/.git/config core.editor core.fsmonitor include.path"]);
    let now = |key: &str| scene.git("root/repo", &["config", "--default", "none", key]);
    assert_eq!(now("core.editor"), "mine\n");
    assert_eq!(now("core.fsmonitor"), "none\n");
    assert_eq!(now("include.path"), "none\n");
    assert_eq!(now("user.email"), "me@example.org\n");
    assert!(!scene.exists("root/repo/.git/config.lock"));
    assert_eq!(scene.finish(), []);
}

#[test]
fn a_new_repository_keeps_its_configuration_but_for_such_keys() {
    let mut scene = Scene::new(Rules::default());
    scene.open();
    scene.git("root", &["init", "-q", "--bare", "--template=", "odd"]);
    scene.git("root/odd", &["config", "core.fsmonitor", "evil"]);
    scene.git("root/odd", &["config", "user.name", "Me"]);
    let root = scene.root();
    assert_eq!(short(&root, &scene.happened()), ["restored odd/config core.fsmonitor"]);
    assert_eq!(scene.git("root/odd", &["config", "user.name"]), "Me\n");
}

#[test]
fn a_configuration_that_git_cannot_read_is_put_back_or_moved_away() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let before = scene.read("root/repo/.git/config");
    scene.open();
    scene.write("root/repo/.git/config", "[core");
    scene.write("root/new/HEAD", "ref: refs/heads/main");
    scene.write("root/new/objects/x", "");
    scene.write("root/new/refs/x", "");
    scene.write("root/new/config", "[core");
    let root = scene.root();
    let found = short(&root, &scene.happened());
    assert_eq!(found, ["quarantined new/config", "restored repo/.git/config all of it"]);
    assert_eq!(scene.read("root/repo/.git/config"), before);
}

#[test]
fn a_lock_that_somebody_holds_does_not_keep_a_key_from_being_put_back() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let before = scene.read("root/repo/.git/config");
    scene.open();
    scene.write("root/repo/.git/config", &format!("{before}[core]\n\tsshCommand = evil\n"));
    scene.write("root/repo/.git/config.lock", "held");
    let root = scene.root();
    assert_eq!(short(&root, &scene.happened()), ["restored repo/.git/config core.sshcommand"]);
    assert!(!scene.read("root/repo/.git/config").contains("sshCommand"));
    assert_eq!(scene.read("root/repo/.git/config.lock"), "held");
}

#[test]
fn what_leads_git_out_of_the_root_is_moved_away_and_what_leads_inside_is_looked_at() {
    let mut scene = Scene::guarded();
    repository(&scene, "elsewhere");
    scene.open();
    let elsewhere = scene.text("elsewhere/.git");
    scene.write("root/out/.git", &format!("gitdir: {elsewhere}\n"));
    scene.write("root/in/.git", "gitdir: ../repo/.git/objects/evil\n");
    scene.write("root/repo/.git/objects/evil/config", "[core]\n\tfsmonitor = evil\n");
    scene.write("root/repo/.git/objects/evil/hooks/pre-commit", "evil");
    let root = scene.root();
    let mut found = scene.happened();
    found.extend(scene.finish());
    assert_eq!(
        short(&root, &found),
        [
            "quarantined out/.git",
            "quarantined repo/.git/objects/evil/hooks/pre-commit",
            "restored repo/.git/objects/evil/config core.fsmonitor",
        ]
    );
    assert!(scene.exists("root/in/.git"));
}

#[test]
fn husky_stays_and_is_listed_and_gits_key_for_it_is_put_back() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    scene.write("root/repo/.husky/pre-commit", "npm test\n");
    scene.write("root/repo/.husky/_/pre-commit", "#!/usr/bin/env sh\n");
    scene.git("root/repo", &["config", "core.hooksPath", ".husky/_"]);
    let root = scene.root();
    let mut found = scene.happened();
    found.retain(|finding| !matches!(finding, Finding::Left { .. }));
    found.extend(scene.finish());
    let husky = ["new repo/.husky/_/pre-commit", "new repo/.husky/pre-commit"];
    assert_eq!(short(&root, &found), [&husky[..], &["restored repo/.git/config core.hookspath"]].concat());
    assert!(scene.exists("root/repo/.husky/_/pre-commit"));
}

#[test]
fn hooks_in_a_folder_of_the_configurations_choice_are_hooks() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.git("root/repo", &["config", "core.hooksPath", ".githooks"]);
    scene.open();
    scene.write("root/repo/.githooks/pre-commit", "evil");
    let root = scene.root();
    assert_eq!(short(&root, &scene.happened()), ["quarantined repo/.githooks/pre-commit"]);
}

#[test]
fn npm_init_is_listed() {
    let mut scene = Scene::guarded();
    scene.open();
    let npm = Command::new("npm").args(["init", "-y"]).current_dir(scene.at("root")).output().unwrap();
    assert!(npm.status.success(), "{}", String::from_utf8_lossy(&npm.stderr));
    let root = scene.root();
    assert_eq!(short(&root, &scene.finish()), ["new package.json"]);
    assert!(scene.read("root/package.json").contains("scripts"));
}

#[test]
fn a_name_that_stands_in_the_way_of_the_repair_does_not_hold_it_up() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/r");
    scene.open();
    // Who holds the lock, and what the watcher once called its own, as folders.
    fs::create_dir(scene.at("root/r/.git/config.lock")).unwrap();
    fs::create_dir(scene.at(&format!("root/r/.git/config.ironcurtain-{}", std::process::id()))).unwrap();
    let config = scene.at("root/r/.git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[core]\n\tfsmonitor = evil\n")).unwrap();
    let found = scene.happened();
    assert!(matches!(found.as_slice(), [Finding::Restored { .. }]), "{found:?}");
    assert!(!fs::read_to_string(&config).unwrap().contains("evil"));
}

#[test]
fn keys_of_the_persons_own_stay_in_a_root_too_large_to_know_when_git_merely_looks() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    let config = scene.at("root/p/q/r/repo/.git/config");
    let own = format!("{}[core]\n\tpager = mine\n", fs::read_to_string(&config).unwrap());
    // Stamped with a finer clock than others, since somebody looks at the stamps: just before, and yet before.
    for _ in 0..20 {
        fs::write(&config, &own).unwrap();
        fs::metadata(&config).unwrap();
    }
    scene.open();
    scene.write("root/p/q/r/repo/a", "x");
    scene.git("root/p/q/r/repo", &["add", "a"]);
    let found = scene.finish();
    assert!(!found.iter().any(|finding| matches!(finding, Finding::Restored { .. })), "{found:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), own);
}

#[test]
fn what_may_be_the_persons_own_in_a_root_too_large_to_know_is_listed_and_stays() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    scene.git("root/p/q/r/repo", &["config", "core.pager", "mine"]);
    scene.write("root/p/q/r/repo/.git/hooks/pre-commit", "mine");
    scene.write("root/p/q/r/.mcp.json", SERVERS);
    repository(&scene, "root/p/q/r/other");
    scene.open();
    // A line of git's own; what a backup does; another key, which nobody can tell from those before.
    scene.git("root/p/q/r/repo", &["config", "user.name", "Me"]);
    for linked in ["repo/.git/hooks/pre-commit", ".mcp.json"] {
        let from = scene.at("root/p/q/r").join(linked);
        fs::hard_link(from, scene.at("backup").with_extension(linked.len().to_string())).unwrap();
    }
    // Harmless, and certainly new.
    scene.git("root/p/q/r/other", &["config", "user.name", "Me"]);
    scene.write("root/p/q/r/other/.git/hooks/post-commit", "evil");
    let root = scene.root();
    let mut found = short(&root, &scene.finish());
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
fn a_folder_that_is_moved_to_a_repositorys_hooks_counts_as_new_however_old_it_is() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    scene.write("root/p/q/r/old/post-commit", "#!/bin/sh\n");
    fs::remove_dir_all(scene.at("root/p/q/r/repo/.git/hooks")).unwrap();
    scene.open();
    // The folders are seen from the look that a change in them brings.
    scene.write("root/p/q/r/repo/a", "x");
    fs::rename(scene.at("root/p/q/r/old"), scene.at("root/p/q/r/repo/.git/hooks")).unwrap();
    scene.finish();
    assert!(!scene.exists("root/p/q/r/repo/.git/hooks/post-commit"));
}

#[test]
fn nothing_is_hidden_in_a_folder_that_looks_like_a_repository() {
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
    // Once as events tell of it, and once as the last look alone finds it.
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
            assert_eq!(scene.happened(), []);
            // Another folder at the path is looked at anew.
            fs::rename(scene.at("root/src"), scene.at("root/t")).unwrap();
            fs::rename(scene.at("root/t"), scene.at("root/src")).unwrap();
            assert_eq!(scene.happened(), []);
        }
        for path in planted {
            scene.write(&format!("root/{path}"), SERVERS);
        }
        let root = scene.root();
        let mut found = if is_seen { scene.happened() } else { vec![] };
        if is_seen {
            let all: Vec<String> = planted.iter().map(|path| format!("quarantined {path}")).collect();
            assert_eq!(short(&root, &found), all);
        }
        found.extend(scene.finish());
        assert_eq!(found.len(), planted.len(), "{found:?}");
        assert!(planted.iter().all(|path| !scene.exists(&format!("root/{path}"))));
        assert_eq!(scene.git("root/whole", &["status", "--porcelain"]), "");
    }
}

#[test]
fn what_git_stores_is_not_looked_at_and_counts_for_nothing() {
    let mut scene = Scene::guarded();
    // More than the names that are looked at before a root becomes writable.
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
    assert_eq!(scene.now(), []);
    scene.write("root/repo/new", "text");
    for arguments in
        [&["add", "new"][..], &["commit", "-qm", "b"], &["push", "-q", "../0", "HEAD:refs/heads/b"]]
    {
        scene.git("root/repo", arguments);
    }
    assert_eq!(scene.now(), []);
    assert_eq!(scene.finish(), []);
}

#[test]
fn a_key_that_one_sandbox_sets_while_another_is_opened_is_not_what_was_there_before() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    let set = |scene: &Scene| drop(scene.git("root/repo", &["config", "core.fsmonitor", "evil"]));
    set(&scene);
    let root = scene.root();
    scene.watcher.begin("other", Rules { git_config: GitConfig::Guarded, ..Rules::default() }).unwrap();
    scene.watcher.open("other", &root).unwrap();
    assert_eq!(short(&root, &scene.happened()), ["restored repo/.git/config core.fsmonitor"]);
    assert_eq!(scene.finish(), []);
    set(&scene);
    assert_eq!(short(&root, &scene.watcher.finish("other")), ["restored repo/.git/config core.fsmonitor"]);
    assert!(!scene.read("root/repo/.git/config").contains("evil"));
}

#[test]
fn a_configuration_that_the_person_has_named_for_one_is_not_put_back_for_another() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let root = scene.root();
    scene.open();
    scene.watcher.begin("other", Rules { git_config: GitConfig::Guarded, ..Rules::default() }).unwrap();
    scene.watcher.open("other", &root).unwrap();
    let config = scene.text("root/repo/.git/config");
    scene.watcher.named("other", &config);
    scene.git("root/repo", &["config", "core.pager", "asked-for"]);
    assert_eq!((scene.happened(), scene.watcher.finish("other")), (vec![], vec![]));
    assert_eq!(scene.git("root/repo", &["config", "core.pager"]), "asked-for\n");
    // For the other, it is from now on what was there before.
    scene.git("root/repo", &["config", "core.editor", "evil"]);
    assert_eq!(short(&root, &scene.finish()), ["restored repo/.git/config core.editor"]);
    assert_eq!(scene.git("root/repo", &["config", "core.pager"]), "asked-for\n");
}

#[test]
fn a_configuration_from_which_keys_are_taken_out_is_kept_as_it_was() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    scene.git("root/repo", &["config", "core.pager", "perhaps-mine"]);
    let written = scene.read("root/repo/.git/config");
    assert!(matches!(scene.happened().as_slice(), [Finding::Restored { .. }]));
    let kept = fs::read_dir(scene.at("state/quarantine")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join("config")).unwrap(), written);
    assert_eq!(fs::read_to_string(kept.join("origin")).unwrap(), scene.text("root/repo/.git/config"));
}

#[test]
fn a_further_configuration_that_the_persons_own_names_counts_like_it() {
    for is_guarded in [true, false] {
        let mut scene = if is_guarded { Scene::guarded() } else { Scene::new(Rules::default()) };
        repository(&scene, "root/repo");
        scene.git("root/repo", &["config", "include.path", "../shared.cfg"]);
        scene.write("root/repo/shared.cfg", "[include]\n\tpath = more/cfg\n[core]\n\tpager = mine\n");
        scene.write("root/repo/more/cfg", "[user]\n\tname = Me\n");
        let closed = scene.open();
        assert_eq!(closed.contains(&"repo/shared.cfg".to_owned()), !is_guarded, "{closed:?}");
        assert_eq!(closed.contains(&"repo/more/cfg".to_owned()), !is_guarded, "{closed:?}");
        if is_guarded {
            let before = scene.read("root/repo/shared.cfg");
            for name in ["shared.cfg", "more/cfg"] {
                let text = scene.read(&format!("root/repo/{name}"));
                scene.write(&format!("root/repo/{name}"), &format!("{text}[core]\n\tfsmonitor = evil\n"));
            }
            let root = scene.root();
            let expected =
                ["restored repo/more/cfg core.fsmonitor", "restored repo/shared.cfg core.fsmonitor"];
            assert_eq!(short(&root, &scene.happened()), expected);
            assert_eq!(scene.read("root/repo/shared.cfg"), before);
            assert_eq!(scene.git("root/repo", &["config", "--includes", "core.pager"]), "mine\n");
        }
    }
}
