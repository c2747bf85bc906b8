//! Tests that the next process completes the work of a process that was killed at an arbitrary moment.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig, Watcher};

use crate::scene::{Scene, finish_interrupted, summarize};

/// Environment variables that pass the journal folder and the watched root to the process that will be killed.
const STATE: &str = "AUTOSTART_TEST_STATE";
const ROOT: &str = "AUTOSTART_TEST_ROOT";

#[test]
fn next_process_checks_what_a_killed_one_did_not() {
    if let (Ok(state), Ok(root)) = (std::env::var(STATE), std::env::var(ROOT)) {
        watch(&state, &root);
    }
    for moment in 0..40_u64 {
        let scene = Scene::listed();
        scene.git("root", &["init", "-q"]);
        scene.write("root/.envrc", "mine");
        let before = scene.read("root/.git/config");
        let mut child = watching(&scene);
        // The sandbox writes until the process is killed. The delay before the kill differs in each round.
        scene.write("root/.mcp.json", r#"{"mcpServers":{"evil":{}}}"#);
        let config = format!("{before}[user]\n\tname = Me\n[core]\n\tpager = evil\n");
        scene.write("root/.git/config", &config);
        std::thread::sleep(Duration::from_micros(moment * 311));
        child.kill().unwrap();
        child.wait().unwrap();
        scene.write("root/.npmrc", "late");
        // Creates locks of a git process that the killed process started.
        for scratch in ["child~0.scratch".to_owned(), format!("child~0.{}.scratch", child.id())] {
            scene.write(&format!("state/autostart/{scratch}.lock"), "");
        }

        let swept = finish_interrupted(&mut Watcher::new(&scene.at("state")).unwrap());
        let root = scene.root();
        let [(name, found)] = swept.as_slice() else { panic!("{moment}: {swept:?}") };
        assert_eq!(name, "child");
        let mut found = summarize(&root, found);
        found.dedup();
        assert_eq!(
            found,
            ["new .npmrc", "quarantined .mcp.json", "restored .git/config core.pager"],
            "at {moment}"
        );
        assert_eq!(scene.git("root", &["config", "user.name"]), "Me\n");
        assert_eq!(scene.read("root/.envrc"), "mine");
        assert!(!scene.exists("root/.mcp.json"));
        assert_eq!(configs(&scene), ["config"], "at {moment}");
        // A second sweep finds nothing and ignores live processes.
        assert_eq!(finish_interrupted(&mut Watcher::new(&scene.at("state")).unwrap()), []);
        let journals = fs::read_dir(scene.at("state/autostart")).unwrap();
        let journals: Vec<_> =
            journals.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(matches!(journals.as_slice(), [one] if one.starts_with("s~")), "{journals:?}");
    }
}

#[test]
fn unfinished_repair_is_not_reported_and_leaves_no_files() {
    // Repeats until the process is killed during the short wait of a repair.
    let until = Instant::now() + Duration::from_secs(20);
    let (scene, before) = loop {
        let scene = Scene::listed();
        scene.git("root", &["init", "-q"]);
        let mut child = watching(&scene);
        // Another process holds git's lock.
        scene.write("root/.git/config.lock", "held");
        let before = scene.read("root/.git/config");
        let changed = format!("{before}[core]\n\tpager = evil\n");
        scene.write("root/.git/config", &changed);
        while configs(&scene).len() < 3 && scene.read("root/.git/config") == changed {
            assert!(Instant::now() < until, "{:?}", configs(&scene));
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if configs(&scene).len() == 3 {
            break (scene, before);
        }
    };
    // The program that wrote the key removes it.
    scene.write("root/.git/config", &before);
    assert_eq!(swept(&scene), [("child".to_owned(), vec![])]);
    // The lock belongs to another process, so it is kept.
    assert_eq!(configs(&scene), ["config", "config.lock"]);
    assert_eq!(scene.read("root/.git/config"), before);
}

/// Returns the names of the repository's configuration and of files derived from it.
fn configs(scene: &Scene) -> Vec<String> {
    let names = fs::read_dir(scene.at("root/.git")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("config")).collect();
    names.sort();
    names
}

/// Returns the findings of the next sweep. Retries, because a process that another test has just forked may briefly
/// hold the journal's lock.
fn swept(scene: &Scene) -> Vec<(String, Vec<Finding>)> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let swept = finish_interrupted(&mut Watcher::new(&scene.at("state")).unwrap());
        if !swept.is_empty() || Instant::now() > until {
            return swept;
        }
        std::thread::yield_now();
    }
}

/// Starts a process that opens the root and watches it until it is killed.
fn watching(scene: &Scene) -> Child {
    let name = "killed::next_process_checks_what_a_killed_one_did_not";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .envs([(STATE, scene.text("state")), (ROOT, scene.root())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "open"));
    child
}

fn watch(state: &str, root: &str) -> ! {
    let mut watcher = Watcher::new(state.as_ref()).unwrap();
    watcher
        .add_sandbox("child", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    watcher.open_root("child", root).unwrap();
    std::io::stdout().write_all(b"\nopen\n").unwrap();
    loop {
        watcher.process_events();
        std::thread::yield_now();
    }
}

#[test]
fn replaced_root_is_not_checked() {
    let scene = Scene::listed();
    let mut other = Watcher::new(&scene.at("state")).unwrap();
    other
        .add_sandbox("gone", AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
        .unwrap();
    other.open_root("gone", &scene.root()).unwrap();
    drop(other);
    fs::rename(scene.at("root"), scene.at("old")).unwrap();
    scene.write("root/.mcp.json", r#"{"mcpServers":{"mine":{}}}"#);
    let swept = swept(&scene);
    assert!(
        matches!(swept.as_slice(), [(_, found)] if matches!(found.as_slice(), [Finding::Unfinished { .. }])),
        "{swept:?}"
    );
    assert!(scene.exists("root/.mcp.json"));
}
