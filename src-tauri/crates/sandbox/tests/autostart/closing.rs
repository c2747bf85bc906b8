//! Files that are closed when a root becomes writable.

use std::{fs, os::unix::fs::symlink, time::Instant};

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig};

use crate::scene::{Scene, all, git, short};

#[test]
fn what_runs_by_itself_is_closed_and_what_the_person_runs_is_not() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    for path in [
        ".mcp.json",
        ".vscode/tasks.json",
        ".vscode/extensions.json",
        ".envrc",
        "sub/.idea/x",
        "package.json",
    ] {
        scene.write(&format!("root/{path}"), "{}");
    }
    let closed = scene.open();
    assert_eq!(
        closed,
        [".envrc", ".git/config", ".git/hooks", ".mcp.json", ".vscode/tasks.json", "sub/.idea"]
    );
}

#[test]
fn a_guarded_configuration_is_not_closed_and_a_repository_has_any_name() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q", "--bare", "some"]);
    assert_eq!(scene.open(), ["some/hooks"]);
}

#[test]
fn where_a_link_leads_is_closed_and_where_a_configuration_has_its_hooks() {
    let mut scene =
        Scene::new(AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() });
    scene.git("root", &["init", "-q"]);
    scene.git("root", &["config", "core.hooksPath", ".githooks"]);
    scene.write("root/.githooks/pre-commit", "run");
    scene.write("root/dotfiles/envrc", "run");
    scene.write("elsewhere", "run");
    symlink("dotfiles/envrc", scene.at("root/.envrc")).unwrap();
    symlink(scene.at("elsewhere"), scene.at("root/.mcp.json")).unwrap();
    assert_eq!(scene.open(), [".envrc", ".git/hooks", ".githooks", ".mcp.json", "dotfiles/envrc"]);
}

#[test]
fn start_up_files_count_in_the_home_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("root").to_str().map(str::to_owned);
    for (home, counts) in [(None, false), (home, true)] {
        let mut scene = Scene::listed();
        let home = home.map(|_| scene.root());
        scene.watcher.begin("home", AutostartRules { home, ..AutostartRules::default() }).unwrap();
        scene.write("root/.bashrc", "");
        scene.write("root/.config/systemd/user/a.service", "");
        scene.write("root/sub/.bashrc", "");
        let root = scene.root();
        let closed = scene.watcher.open("home", &root).unwrap();
        let expected = [format!("{root}/.bashrc"), format!("{root}/.config/systemd")];
        assert_eq!(closed, if counts { expected.to_vec() } else { vec![] });
    }
}

#[test]
fn a_root_that_is_itself_such_a_folder_or_file_is_closed() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.idea/a/b", "");
    scene.write("root/.envrc", "");
    for (root, closed) in [
        ("root/.git/hooks", vec!["root/.git/hooks"]),
        ("root/.idea/a", vec!["root/.idea/a"]),
        ("root/.envrc", vec!["root/.envrc"]),
        ("root/.git", vec!["root/.git/config", "root/.git/hooks"]),
    ] {
        let root = scene.text(root);
        let expected: Vec<String> = closed.into_iter().map(|path| scene.text(path)).collect();
        assert_eq!(scene.watcher.open("s", &root).unwrap(), expected);
    }
}

#[test]
fn what_a_package_manager_has_installed_can_be_installed_anew() {
    let mut scene = Scene::listed();
    for path in [".vscode/settings.json", ".idea/x", "package.json", ".mcp.json"] {
        scene.write(&format!("root/node_modules/a/{path}"), r#"{"scripts":{"install":"x"}}"#);
    }
    assert_eq!(scene.open(), ["node_modules/a/.mcp.json"]);
    scene.write("root/node_modules/b/package.json", r#"{"scripts":{"install":"x"}}"#);
    assert_eq!(scene.finish(), []);
}

#[test]
fn nothing_is_created_in_the_persons_tree() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q"]);
    scene.write("root/a.txt", "a");
    scene.git("root", &["add", "-A"]);
    scene.git("root", &["commit", "-qm", "a"]);
    let status = |scene: &Scene| scene.git("root", &["status", "--porcelain", "--ignored"]);
    let before = (all(&scene.at("root")), status(&scene));
    assert_eq!(before.1, "");
    scene.open();
    assert_eq!((all(&scene.at("root")), status(&scene)), before);
    assert_eq!(scene.finish(), []);
    assert_eq!((all(&scene.at("root")), status(&scene)), before);
    assert_eq!(all(&scene.at("state/autostart")), []);
}

#[test]
fn a_look_before_the_start_is_bounded_and_says_so() {
    let mut scene = Scene::listed();
    for folder in 0..60 {
        for inner in 0..60 {
            fs::create_dir_all(scene.at(&format!("root/{folder}/{inner}"))).unwrap();
        }
        scene.write(&format!("root/{folder}/sub/.envrc"), "");
    }
    let closed = scene.open();
    assert!(closed.len() < 60, "{}", closed.len());
    let root = scene.root();
    let told = short(&root, &scene.now());
    assert_eq!(
        told,
        [format!(
            "unfinished `{root}` has too many names: only the nearest were looked at; all of it is looked at in the end"
        )]
    );
    // What was there before stays, also where it was not come to.
    assert_eq!(scene.finish(), []);
    assert_eq!((0..60).filter(|folder| scene.exists(&format!("root/{folder}/sub/.envrc"))).count(), 60);
}

#[test]
fn opening_is_quick() {
    let mut scene = Scene::guarded();
    // The quickest of some: the machine may do other things meanwhile.
    let empty = (0..3).map(|n| {
        let empty = scene.at(&format!("empty{n}"));
        fs::create_dir(&empty).unwrap();
        let time = Instant::now();
        scene.watcher.open("s", empty.to_str().unwrap()).unwrap();
        time.elapsed()
    });
    let empty = empty.min().unwrap();
    git(&scene.at("root"), &["init", "-q"]);
    for file in 0..4_900 {
        scene.write(&format!("root/{}/{file}.txt", file / 50), "");
    }
    let time = Instant::now();
    scene.open();
    let full = time.elapsed();
    // Far from what is aimed at, so that a busy machine does not fail it.
    assert!(empty.as_millis() < 50 && full.as_millis() < 1_000, "{empty:?} {full:?}");
}

#[test]
fn what_is_closed_is_not_judged_and_a_replaced_one_is_told_of() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.mcp.json", r#"{"mcpServers":{"a":{}}}"#);
    scene.open();
    // In place, by a program outside.
    scene.write("root/.mcp.json", r#"{"mcpServers":{"b":{}}}"#);
    assert_eq!((scene.happened(), scene.watcher.uncovered()), (vec![], vec![]));
    // By renaming, as git does.
    scene.git("root", &["config", "core.pager", "mine"]);
    assert_eq!(scene.happened(), []);
    assert_eq!(scene.watcher.uncovered(), ["s"]);
    assert_eq!(scene.watcher.uncovered(), Vec::<String>::new());
    // Covered again, so once more.
    scene.watcher.covered("s");
    scene.git("root", &["config", "core.editor", "mine"]);
    assert_eq!(scene.happened(), []);
    assert_eq!(scene.watcher.uncovered(), ["s"]);
    assert_eq!(scene.finish(), []);
    assert_eq!(scene.git("root", &["config", "core.pager"]), "mine\n");
}

#[test]
fn what_is_written_where_a_cover_was_lost_is_judged_like_a_new_one() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.mcp.json", "{}");
    scene.open();
    scene.write("root/mine", "{}");
    fs::rename(scene.at("root/mine"), scene.at("root/.mcp.json")).unwrap();
    scene.git("root", &["config", "user.name", "Me"]);
    assert_eq!(scene.happened(), []);
    scene.write("root/.mcp.json", r#"{"mcpServers":{"evil":{}}}"#);
    let config = scene.read("root/.git/config");
    scene.write("root/.git/config", &format!("{config}[core]\n\tfsmonitor = evil\n"));
    let root = scene.root();
    let found = short(&root, &scene.happened());
    assert_eq!(found, ["quarantined .mcp.json", "restored .git/config core.fsmonitor"]);
    assert_eq!(scene.git("root", &["config", "user.name"]), "Me\n");
    assert!(scene.git("root", &["config", "--list"]).find("fsmonitor").is_none());
}

#[test]
fn a_hidden_file_that_is_replaced_is_told_of() {
    let mut scene = Scene::listed();
    scene.write("home/.ssh/id", "secret");
    let hidden = scene.text("home/.ssh/id");
    scene.watcher.hidden("s", &[hidden]);
    scene.write("home/.ssh/other", "x");
    assert_eq!((scene.now(), scene.watcher.uncovered()), (vec![], vec![]));
    scene.write("home/new", "secret");
    fs::rename(scene.at("home/new"), scene.at("home/.ssh/id")).unwrap();
    assert_eq!((scene.happened(), scene.watcher.uncovered()), (vec![], vec!["s".to_owned()]));
    fs::rename(scene.at("home/.ssh"), scene.at("home/away")).unwrap();
    assert_eq!((scene.happened(), scene.watcher.uncovered()), (vec![], vec!["s".to_owned()]));
}

#[test]
fn one_who_replaces_the_folder_around_a_closed_file_gains_nothing() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.git/hooks/post-checkout", "mine");
    scene.open();
    fs::rename(scene.at("root/.git"), scene.at("root/old")).unwrap();
    scene.git("root", &["init", "-q"]);
    scene.git("root", &["config", "core.fsmonitor", "evil"]);
    scene.write("root/.git/hooks/pre-commit", "evil");
    let root = scene.root();
    let mut found: Vec<Finding> = scene.happened();
    found.extend(scene.finish());
    let found = short(&root, &found);
    assert_eq!(found, ["quarantined .git/hooks/pre-commit", "restored .git/config core.fsmonitor"]);
    assert_eq!(scene.read("root/old/hooks/post-checkout"), "mine");
}
