//! Tests files that are reported and left in place.

use ironcurtain_sandbox::autostart::{AutostartMode, AutostartRules, ChangeKind, Finding};

use crate::scene::{Scene, summarize};

#[test]
fn requested_files_stay_and_are_reported_with_their_diff() {
    let mut scene = Scene::listed();
    scene.write("root/Makefile", "all:\n\ttrue\n");
    scene.write("root/justfile", "all:\n");
    scene.open();
    scene.write("root/Makefile", "all:\n\tevil\n");
    scene.write("root/justfile", "all:\n");
    scene.write("root/.vscode/settings.json", "{}\n");
    scene.write("root/.gitattributes", "* text\n");
    scene.write("root/src/main.rs", "");
    let root = scene.root();
    let seen = summarize(&root, &scene.wait_for_findings());
    let expected = ["changed Makefile", "new .gitattributes", "new .vscode/settings.json"];
    assert_eq!(seen, expected);
    let found = scene.finish();
    assert_eq!(summarize(&root, &found), expected);
    let make = found
        .iter()
        .find(|finding| matches!(finding, Finding::AutostartFile { change: ChangeKind::Changed, .. }));
    let Some(Finding::AutostartFile { when, diff: Some(diff), .. }) = make else { panic!("{found:?}") };
    assert_eq!(when, "when you run make or just in this folder");
    assert!(diff.contains("-\ttrue\n+\tevil\n"), "{diff}");
    assert_eq!(scene.read("root/.vscode/settings.json"), "{}\n");
}

#[test]
fn removed_and_reverted_files_are_not_listed() {
    let mut scene = Scene::listed();
    scene.write("root/Makefile", "a\n");
    scene.open();
    scene.write("root/.npmrc", "x");
    scene.write("root/Makefile", "b\n");
    assert_eq!(scene.wait_for_findings().len(), 2);
    std::fs::remove_file(scene.at("root/.npmrc")).unwrap();
    scene.write("root/Makefile", "a\n");
    assert_eq!(scene.finish(), []);
}

#[test]
fn environment_files_of_package_managers_are_listed_and_stay() {
    for rules in [AutostartMode::Listed, AutostartMode::Strict] {
        let mut scene = Scene::new(AutostartRules { mode: rules, ..AutostartRules::default() });
        scene.write("root/old/.venv/bin/pytest", "#!/bin/sh\n");
        scene.open();
        let packages = ".venv/lib/python3.12/site-packages";
        // Files that `uv sync` writes to a new environment, and files that `pip install` writes to an existing
        // environment.
        for name in ["activate", "python", "pytest", "uvicorn"] {
            scene.write(&format!("root/.venv/bin/{name}"), "#!/bin/sh\n");
        }
        scene.write(&format!("root/{packages}/_virtualenv.pth"), "import _virtualenv\n");
        scene.write(&format!("root/{packages}/_virtualenv.py"), "");
        scene.write("root/old/.venv/bin/pytest", "#!/usr/bin/python3\n");
        scene.write("root/old/.venv/bin/uvicorn", "#!/usr/bin/python3\n");
        let mut found = scene.wait_for_findings();
        assert!(!found.iter().any(|one| matches!(one, Finding::Quarantined { .. })), "{found:?}");
        found = scene.finish();
        let expected = [
            "changed old/.venv/bin/pytest".to_owned(),
            "new .venv/bin".to_owned(),
            format!("new {packages}/_virtualenv.pth"),
            "new old/.venv/bin/uvicorn".to_owned(),
        ];
        assert_eq!(summarize(&scene.root(), &found), expected);
        for name in ["bin/activate", "bin/uvicorn", "lib/python3.12/site-packages/_virtualenv.pth"] {
            assert!(scene.exists(&format!("root/.venv/{name}")), "{name}");
        }
    }
}

#[test]
fn package_is_listed_when_its_scripts_change() {
    let mut scene = Scene::listed();
    scene.write("root/package.json", r#"{"scripts":{"a":"b"}}"#);
    scene.write("root/sub/package.json", r#"{"scripts":{"a":"b"}}"#);
    scene.open();
    scene.write("root/package.json", r#"{"version":"2","scripts":{"a":"b"}}"#);
    scene.write("root/sub/package.json", r#"{"scripts":{"postinstall":"evil"}}"#);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.finish()), ["changed sub/package.json"]);
}

#[test]
fn diff_is_truncated() {
    let mut scene = Scene::listed();
    scene.open();
    scene.write("root/Makefile", &"é\n".repeat(5_000));
    let found = scene.finish();
    let [Finding::AutostartFile { diff: Some(diff), .. }] = found.as_slice() else { panic!("{found:?}") };
    assert!(diff.len() <= 4 << 10 && diff.ends_with("..."));
}

#[test]
fn closed_root_gets_one_final_check() {
    let mut scene = Scene::listed();
    scene.open();
    scene.write("root/.npmrc", "x");
    let root = scene.root();
    let closed = scene.watcher.close_root("s", &root);
    assert_eq!(summarize(&root, &closed), ["new .npmrc"]);
    scene.write("root/.mcp.json", r#"{"mcpServers":{"mine":{}}}"#);
    assert_eq!((scene.poll_findings(), scene.finish()), (vec![], vec![]));
    assert!(scene.exists("root/.mcp.json"));
}

#[test]
fn serialized_findings_are_stable() {
    let left =
        Finding::AutostartFile { path: "/a".into(), when: "w".into(), change: ChangeKind::New, diff: None };
    let text = serde_json::to_string(&left).unwrap();
    assert_eq!(text, r#"{"finding":"left","path":"/a","when":"w","change":"new","diff":null}"#);
    let moved = Finding::Quarantined { path: "/a".into(), moved_to: "/b".into(), when: "w".into() };
    let text = serde_json::to_string(&moved).unwrap();
    assert_eq!(text, r#"{"finding":"quarantined","path":"/a","movedTo":"/b","when":"w"}"#);
}
