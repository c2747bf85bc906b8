//! Keys of a repository's configuration that make git run something are put back; the others stay.

use std::fs;

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig};

use crate::scene::{Scene, finish, repository, short};

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
    let mut scene = Scene::listed();
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
fn a_key_that_one_sandbox_sets_while_another_is_opened_is_not_what_was_there_before() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    scene.open();
    let set = |scene: &Scene| drop(scene.git("root/repo", &["config", "core.fsmonitor", "evil"]));
    set(&scene);
    let root = scene.root();
    scene
        .watcher
        .begin("other", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    scene.watcher.open("other", &root).unwrap();
    assert_eq!(short(&root, &scene.happened()), ["restored repo/.git/config core.fsmonitor"]);
    assert_eq!(scene.finish(), []);
    set(&scene);
    assert_eq!(
        short(&root, &finish(&mut scene.watcher, "other")),
        ["restored repo/.git/config core.fsmonitor"]
    );
    assert!(!scene.read("root/repo/.git/config").contains("evil"));
}

#[test]
fn a_configuration_that_the_person_has_named_for_one_is_not_put_back_for_another() {
    let mut scene = Scene::guarded();
    repository(&scene, "root/repo");
    let root = scene.root();
    scene.open();
    scene
        .watcher
        .begin("other", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    scene.watcher.open("other", &root).unwrap();
    let config = scene.text("root/repo/.git/config");
    scene.watcher.named("other", &config);
    scene.git("root/repo", &["config", "core.pager", "asked-for"]);
    assert_eq!((scene.happened(), finish(&mut scene.watcher, "other")), (vec![], vec![]));
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
            assert_eq!(short(&root, &scene.happened()), expected);
            assert_eq!(scene.read("root/repo/shared.cfg"), before);
            assert_eq!(scene.git("root/repo", &["config", "--includes", "core.pager"]), "mine\n");
        }
    }
}
