//! Tests which files become read-only when a root becomes writable.

use std::{fs, os::unix::fs::symlink, time::Instant};

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig};

use crate::scene::{Scene, git, read_tree, summarize};

#[test]
fn closes_automatic_files_but_not_ones_the_user_runs() {
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
fn guarded_configuration_stays_writable_in_repositories_of_any_name() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q", "--bare", "some"]);
    assert_eq!(scene.open(), ["some/hooks"]);
}

#[test]
fn closes_link_targets_and_configured_hooks() {
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
fn startup_files_count_only_in_the_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("root").to_str().map(str::to_owned);
    for (home, counts) in [(None, false), (home, true)] {
        let mut scene = Scene::listed();
        let home = home.map(|_| scene.root());
        scene.watcher.add_sandbox("home", AutostartRules { home, ..AutostartRules::default() }).unwrap();
        scene.write("root/.bashrc", "");
        scene.write("root/.config/systemd/user/a.service", "");
        scene.write("root/sub/.bashrc", "");
        let root = scene.root();
        let closed = scene.watcher.open_root("home", &root).unwrap();
        let expected = [format!("{root}/.bashrc"), format!("{root}/.config/systemd")];
        assert_eq!(closed, if counts { expected.to_vec() } else { vec![] });
    }
}

#[test]
fn closes_root_that_is_an_autostart_path() {
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
        assert_eq!(scene.watcher.open_root("s", &root).unwrap(), expected);
    }
}

#[test]
fn installed_packages_can_be_reinstalled() {
    let mut scene = Scene::listed();
    for path in [".vscode/settings.json", ".idea/x", "package.json", ".mcp.json"] {
        scene.write(&format!("root/node_modules/a/{path}"), r#"{"scripts":{"install":"x"}}"#);
    }
    assert_eq!(scene.open(), ["node_modules/a/.mcp.json"]);
    scene.write("root/node_modules/b/package.json", r#"{"scripts":{"install":"x"}}"#);
    assert_eq!(scene.finish(), []);
}

#[test]
fn creates_nothing_in_the_users_tree() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q"]);
    scene.write("root/a.txt", "a");
    scene.git("root", &["add", "-A"]);
    scene.git("root", &["commit", "-qm", "a"]);
    let status = |scene: &Scene| scene.git("root", &["status", "--porcelain", "--ignored"]);
    let before = (read_tree(&scene.at("root")), status(&scene));
    assert_eq!(before.1, "");
    scene.open();
    assert_eq!((read_tree(&scene.at("root")), status(&scene)), before);
    assert_eq!(scene.finish(), []);
    assert_eq!((read_tree(&scene.at("root")), status(&scene)), before);
    assert_eq!(read_tree(&scene.at("state/autostart")), []);
}

#[test]
fn initial_walk_is_limited_and_reports_it() {
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
    let findings = summarize(&root, &scene.poll_findings());
    assert_eq!(
        findings,
        [format!(
            "unfinished `{root}` has too many names, so only the nearest were checked; everything is checked when the sandbox exits"
        )]
    );
    // Existing files stay in place, even in folders that the walk did not reach.
    assert_eq!(scene.finish(), []);
    assert_eq!((0..60).filter(|folder| scene.exists(&format!("root/{folder}/sub/.envrc"))).count(), 60);
}

#[test]
fn opening_is_quick() {
    let mut scene = Scene::guarded();
    // Takes the fastest of several runs, because the machine may be busy.
    let empty = (0..3).map(|n| {
        let empty = scene.at(&format!("empty{n}"));
        fs::create_dir(&empty).unwrap();
        let time = Instant::now();
        scene.watcher.open_root("s", empty.to_str().unwrap()).unwrap();
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
    // The limit is far above the target, so the test does not fail on a busy machine.
    assert!(empty.as_millis() < 50 && full.as_millis() < 1_000, "{empty:?} {full:?}");
}

#[test]
fn closed_files_are_not_judged_and_replaced_ones_are_reported() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.mcp.json", r#"{"mcpServers":{"a":{}}}"#);
    scene.open();
    // A program outside the sandbox writes to the file in place.
    scene.write("root/.mcp.json", r#"{"mcpServers":{"b":{}}}"#);
    assert_eq!((scene.wait_for_findings(), scene.watcher.take_uncovered()), (vec![], vec![]));
    // A program outside the sandbox replaces the file by renaming, as git does.
    scene.git("root", &["config", "core.pager", "mine"]);
    assert_eq!(scene.wait_for_findings(), []);
    assert_eq!(scene.watcher.take_uncovered(), ["s"]);
    assert_eq!(scene.watcher.take_uncovered(), Vec::<String>::new());
    // A second replacement is reported only after the file was covered again.
    scene.watcher.masks_restored("s");
    scene.git("root", &["config", "core.editor", "mine"]);
    assert_eq!(scene.wait_for_findings(), []);
    assert_eq!(scene.watcher.take_uncovered(), ["s"]);
    assert_eq!(scene.finish(), []);
    assert_eq!(scene.git("root", &["config", "core.pager"]), "mine\n");
}

#[test]
fn writes_to_uncovered_files_are_judged_as_new() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.mcp.json", "{}");
    scene.open();
    scene.write("root/mine", "{}");
    fs::rename(scene.at("root/mine"), scene.at("root/.mcp.json")).unwrap();
    scene.git("root", &["config", "user.name", "Me"]);
    assert_eq!(scene.wait_for_findings(), []);
    scene.write("root/.mcp.json", r#"{"mcpServers":{"evil":{}}}"#);
    let config = scene.read("root/.git/config");
    scene.write("root/.git/config", &format!("{config}[core]\n\tfsmonitor = evil\n"));
    let root = scene.root();
    let found = summarize(&root, &scene.wait_for_findings());
    assert_eq!(found, ["quarantined .mcp.json", "restored .git/config core.fsmonitor"]);
    assert_eq!(scene.git("root", &["config", "user.name"]), "Me\n");
    assert!(scene.git("root", &["config", "--list"]).find("fsmonitor").is_none());
}

#[test]
fn replaced_hidden_file_is_reported() {
    let mut scene = Scene::listed();
    scene.write("home/.ssh/id", "secret");
    let hidden = scene.text("home/.ssh/id");
    scene.watcher.set_hidden("s", &[hidden]);
    scene.write("home/.ssh/other", "x");
    assert_eq!((scene.poll_findings(), scene.watcher.take_uncovered()), (vec![], vec![]));
    scene.write("home/new", "secret");
    fs::rename(scene.at("home/new"), scene.at("home/.ssh/id")).unwrap();
    assert_eq!((scene.wait_for_findings(), scene.watcher.take_uncovered()), (vec![], vec!["s".to_owned()]));
    fs::rename(scene.at("home/.ssh"), scene.at("home/away")).unwrap();
    assert_eq!((scene.wait_for_findings(), scene.watcher.take_uncovered()), (vec![], vec!["s".to_owned()]));
}

#[test]
fn replacing_the_folder_of_a_closed_file_has_no_effect() {
    let mut scene = Scene::listed();
    scene.git("root", &["init", "-q"]);
    scene.write("root/.git/hooks/post-checkout", "mine");
    scene.open();
    fs::rename(scene.at("root/.git"), scene.at("root/old")).unwrap();
    scene.git("root", &["init", "-q"]);
    scene.git("root", &["config", "core.fsmonitor", "evil"]);
    scene.write("root/.git/hooks/pre-commit", "evil");
    let root = scene.root();
    let mut found: Vec<Finding> = scene.wait_for_findings();
    found.extend(scene.finish());
    let found = summarize(&root, &found);
    assert_eq!(found, ["quarantined .git/hooks/pre-commit", "restored .git/config core.fsmonitor"]);
    assert_eq!(scene.read("root/old/hooks/post-checkout"), "mine");
}
