//! Tests that git configuration keys that make git run programs are restored.

use std::fs;

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig};

use crate::scene::{Scene, finish, repository, summarize};

#[test]
fn restores_only_keys_that_run_programs() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.git("root/repo", &["config", "core.editor", "mine"]);
    scene.open();
    scene.git("root/repo", &["config", "core.fsmonitor", "evil"]);
    scene.git("root/repo", &["config", "core.editor", "evil"]);
    scene.git("root/repo", &["config", "user.email", "me@example.org"]);
    scene.git("root/repo", &["config", "include.path", "../evil"]);
    let root = scene.root();
    let found = summarize(&root, &scene.wait_for_findings());
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
fn new_repository_loses_only_keys_that_run_programs() {
    let mut scene = Scene::listed();
    scene.open();
    scene.git("root", &["init", "-q", "--bare", "--template=", "odd"]);
    scene.git("root/odd", &["config", "core.fsmonitor", "evil"]);
    scene.git("root/odd", &["config", "user.name", "Me"]);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["restored odd/config core.fsmonitor"]);
    assert_eq!(scene.git("root/odd", &["config", "user.name"]), "Me\n");
}

#[test]
fn invalid_configuration_is_restored_or_quarantined() {
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
    let found = summarize(&root, &scene.wait_for_findings());
    assert_eq!(found, ["quarantined new/config", "restored repo/.git/config all of it"]);
    assert_eq!(scene.read("root/repo/.git/config"), before);
}

#[test]
fn restores_keys_despite_a_held_lock() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let before = scene.read("root/repo/.git/config");
    scene.open();
    scene.write("root/repo/.git/config", &format!("{before}[core]\n\tsshCommand = evil\n"));
    scene.write("root/repo/.git/config.lock", "held");
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["restored repo/.git/config core.sshcommand"]);
    assert!(!scene.read("root/repo/.git/config").contains("sshCommand"));
    assert_eq!(scene.read("root/repo/.git/config.lock"), "held");
}

#[test]
fn restores_keys_despite_obstructing_names() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/r");
    scene.open();
    // Creates folders at the paths of git's lock and of the draft of an earlier version.
    fs::create_dir(scene.at("root/r/.git/config.lock")).unwrap();
    fs::create_dir(scene.at(&format!("root/r/.git/config.ironcurtain-{}", std::process::id()))).unwrap();
    let config = scene.at("root/r/.git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[core]\n\tfsmonitor = evil\n")).unwrap();
    let found = scene.wait_for_findings();
    assert!(matches!(found.as_slice(), [Finding::Restored { .. }]), "{found:?}");
    assert!(!fs::read_to_string(&config).unwrap().contains("evil"));
}

#[test]
fn keys_in_an_unchecked_part_of_a_root_survive_git_status() {
    let mut scene = Scene::guarded();
    scene.too_large();
    repository(&scene, "root/p/q/r/repo");
    let config = scene.at("root/p/q/r/repo/.git/config");
    let own = format!("{}[core]\n\tpager = mine\n", fs::read_to_string(&config).unwrap());
    // After a timestamp is read, the kernel stamps the next change with a finer resolution, so the write is stamped
    // just before the root is opened.
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
fn key_set_by_one_sandbox_is_not_part_of_the_baseline_of_another() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    let set = |scene: &Scene| drop(scene.git("root/repo", &["config", "core.fsmonitor", "evil"]));
    set(&scene);
    let root = scene.root();
    scene
        .watcher
        .add_sandbox("other", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    scene.watcher.open_root("other", &root).unwrap();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["restored repo/.git/config core.fsmonitor"]);
    assert_eq!(scene.finish(), []);
    set(&scene);
    assert_eq!(
        summarize(&root, &finish(&mut scene.watcher, "other")),
        ["restored repo/.git/config core.fsmonitor"]
    );
    assert!(!scene.read("root/repo/.git/config").contains("evil"));
}

#[test]
fn named_configuration_is_not_restored_for_another_sandbox() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let root = scene.root();
    scene.open();
    scene
        .watcher
        .add_sandbox("other", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    scene.watcher.open_root("other", &root).unwrap();
    let config = scene.text("root/repo/.git/config");
    scene.watcher.add_approved("other", &config);
    scene.git("root/repo", &["config", "core.pager", "asked-for"]);
    assert_eq!((scene.wait_for_findings(), finish(&mut scene.watcher, "other")), (vec![], vec![]));
    assert_eq!(scene.git("root/repo", &["config", "core.pager"]), "asked-for\n");
    // The approved change is now in the baseline of sandbox `s`.
    scene.git("root/repo", &["config", "core.editor", "evil"]);
    assert_eq!(summarize(&root, &scene.finish()), ["restored repo/.git/config core.editor"]);
    assert_eq!(scene.git("root/repo", &["config", "core.pager"]), "asked-for\n");
}

#[test]
fn repaired_configuration_is_kept_in_quarantine() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    scene.git("root/repo", &["config", "core.pager", "perhaps-mine"]);
    let written = scene.read("root/repo/.git/config");
    assert!(matches!(scene.wait_for_findings().as_slice(), [Finding::Restored { .. }]));
    let kept = fs::read_dir(scene.at("state/quarantine")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join("config")).unwrap(), written);
    assert_eq!(fs::read_to_string(kept.join("origin")).unwrap(), scene.text("root/repo/.git/config"));
}

#[test]
fn included_configuration_counts_like_the_including_one() {
    for is_guarded in [true, false] {
        let mut scene = if is_guarded { Scene::guarded() } else { Scene::listed() };
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
            assert_eq!(summarize(&root, &scene.wait_for_findings()), expected);
            assert_eq!(scene.read("root/repo/shared.cfg"), before);
            assert_eq!(scene.git("root/repo", &["config", "--includes", "core.pager"]), "mine\n");
        }
    }
}
