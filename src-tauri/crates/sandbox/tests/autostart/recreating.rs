//! Tests servers that keep recreating a quarantined file or fill the quarantine.

use std::{fs, fs::File};

use ironcurtain_sandbox::autostart::{AutostartRules, Countermeasure, Finding};

use crate::scene::Scene;

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;

/// Returns the number of files in quarantine and their total size.
fn kept(scene: &Scene) -> (usize, u64) {
    let slots =
        fs::read_dir(scene.at("state/quarantine")).into_iter().flatten().map(|slot| slot.unwrap().path());
    let names = slots.flat_map(|slot| fs::read_dir(slot).unwrap()).map(|name| name.unwrap());
    let names: Vec<_> = names.filter(|name| name.file_name() != "origin").collect();
    (names.len(), names.iter().map(|name| name.metadata().unwrap().len()).sum())
}

/// Takes the pending countermeasures.
fn due(scene: &mut Scene) -> Vec<Countermeasure> {
    scene.watcher.take_countermeasures().into_iter().map(|(_, due)| due).collect()
}

#[test]
fn recreated_file_closes_its_root_then_ends_the_session() {
    let mut scene = Scene::listed();
    scene.open();
    let (root, path) = (scene.root(), scene.text("root/.mcp.json"));
    let mut findings = Vec::new();
    for time in 1..=9 {
        scene.write("root/.mcp.json", SERVERS);
        findings.extend(scene.wait_for_findings());
        let expected = Countermeasure::ReadOnly { root: root.clone(), path: path.clone() };
        assert_eq!(due(&mut scene), if time == 5 { vec![expected] } else { vec![] }, "{time}");
        assert!(!scene.exists("root/.mcp.json"));
    }
    let reason = format!("`{path}` was recreated 5 times, so `{root}` is now read-only for the server");
    assert!(findings.contains(&Finding::Unfinished { reason }), "{findings:?}");
    scene.write("root/.mcp.json", SERVERS);
    scene.wait_for_findings();
    let due_now = due(&mut scene);
    let [Countermeasure::End { reason }] = due_now.as_slice() else { panic!("{due_now:?}") };
    assert!(reason.contains(&path), "{reason}");
    assert_eq!(kept(&scene).0, 10);
}

#[test]
fn changing_hook_names_count_as_one_folder_and_keys_count_too() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q"]);
    fs::remove_dir_all(scene.at("root/.git/hooks")).unwrap();
    scene.open();
    for name in 0..5 {
        scene.write(&format!("root/.git/hooks/hook-{name}"), "evil");
        scene.wait_for_findings();
    }
    let expected = |path: &str| Countermeasure::ReadOnly { root: scene.root(), path: scene.text(path) };
    let (hooks, config) = (expected("root/.git/hooks"), expected("root/.git/config"));
    assert_eq!(due(&mut scene), [hooks]);
    for _ in 0..5 {
        scene.git("root", &["config", "core.fsmonitor", "evil"]);
        scene.wait_for_findings();
    }
    assert_eq!(due(&mut scene), [config]);
}

#[test]
fn budget_is_per_session() {
    let mut scene = Scene::listed();
    let root = scene.root();
    let mut again = |name: &str| {
        scene.watcher.add_sandbox(name, AutostartRules::default()).unwrap();
        scene.watcher.open_root(name, &root).unwrap();
        scene.write("root/.mcp.json", SERVERS);
        let _ = scene.watcher.process_events();
        let due = scene.watcher.take_countermeasures().len();
        let (_, journal) = scene.watcher.finish(name);
        journal.unwrap().delete();
        due
    };
    let due: Vec<usize> = (0..5).map(|number| again(&format!("a.{number}"))).collect();
    assert_eq!((due, again("b.0")), (vec![0, 0, 0, 0, 1], 0));
}

#[test]
fn full_quarantine_disarms_files_in_place() {
    let mut scene = Scene::listed();
    scene.open();
    for file in 0..4 {
        fs::create_dir(scene.at(&format!("root/{file}"))).unwrap();
        // Creates sparse files of 100 MiB.
        File::create(scene.at(&format!("root/{file}/.mcp.json"))).unwrap().set_len(100 << 20).unwrap();
    }
    scene.wait_for_findings();
    assert!(matches!(due(&mut scene).as_slice(), [Countermeasure::End { .. }]));
    let (names, bytes) = kept(&scene);
    assert_eq!((names, bytes), (3, 300 << 20));
    assert!((0..4).all(|file| !scene.exists(&format!("root/{file}/.mcp.json"))));
    let mut scene = Scene::listed();
    scene.open();
    for file in 0..1_050 {
        scene.write(&format!("root/{file}/.mcp.json"), SERVERS);
    }
    scene.finish();
    assert_eq!(kept(&scene).0, 1_000);
    assert!((0..1_050).all(|file| !scene.exists(&format!("root/{file}/.mcp.json"))));
}
