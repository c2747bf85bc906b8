//! Tests folders whose mode prevents access. Root bypasses modes, so if root runs these tests, they run a second time
//! as an ordinary user.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
};

use ironcurtain_sandbox::autostart::{AutostartRules, Watcher, quarantine};

use crate::scene::{Scene, finish, finish_interrupted, summarize};

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;
const HOOKS: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"evil"}]}]}}"#;
/// Arbitrary user id. The user need not exist.
const USER: u32 = 64_322;
/// Environment variable with the folder that root prepared for the second run.
const FOREIGN: &str = "AUTOSTART_TEST_FOREIGN";

fn mode(scene: &Scene, path: &str, mode: u32) {
    fs::set_permissions(scene.at(path), Permissions::from_mode(mode)).unwrap();
}

fn mode_of(scene: &Scene, path: &str) -> u32 {
    fs::symlink_metadata(scene.at(path)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn tests_pass_as_an_ordinary_user() {
    if let Ok(place) = std::env::var(FOREIGN) {
        folders_of_another_user(place.as_ref());
        return;
    }
    let own = std::env::current_exe().unwrap();
    if !rustix::process::getuid().is_root() {
        // The other tests need no second run. The test with two users' folders needs a process that appears to be
        // root.
        let mut run = Command::new("unshare");
        run.args(["--user", "--map-root-user", "--map-auto"]).arg(own);
        return ran(run.args(["--exact", "closed_modes::tests_pass_as_an_ordinary_user"]), 1);
    }
    let place = tempfile::Builder::new().prefix("as").tempdir_in("/var/tmp").unwrap();
    chown(place.path(), Some(USER), Some(USER)).unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    for scene in ["seen", "unseen"] {
        let root = place.path().join(scene).join("root");
        fs::create_dir_all(root.join("p/g/x")).unwrap();
        fs::write(root.join("p/g/x/pre-commit"), "evil").unwrap();
        for folder in ["p/g", "p", "", ".."] {
            chown(root.join(folder), Some(USER), Some(USER)).unwrap();
        }
    }
    let copy = place.path().join("autostart");
    fs::copy(own, &copy).unwrap();
    let id = USER.to_string();
    let as_user = || {
        let mut run = Command::new("setpriv");
        run.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(&copy);
        run.env("TMPDIR", place.path()).current_dir(place.path());
        run
    };
    let itself = "closed_modes::tests_pass_as_an_ordinary_user";
    ran(as_user().args(["closed_modes::", "--skip", itself]), 6);
    ran(as_user().args(["--exact", itself]).env(FOREIGN, place.path()), 1);
}

/// Runs tests of this suite and checks how many passed.
fn ran(run: &mut Command, tests: usize) {
    let run = run.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let all = format!("test result: ok. {tests} passed; 0 failed; 0 ignored;");
    assert!(run.status.success() && said.contains(&all), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
}

/// Tests that the watcher notices when another user's folder inside ours, `p/g/x`, becomes a repository's hooks
/// folder.
fn folders_of_another_user(place: &Path) {
    let plant = |root: &str| {
        fs::write(format!("{root}/p/kept"), "text").unwrap();
        let g = |name: &str| format!("{root}/p/g/{name}");
        fs::rename(g("x"), g("hooks")).unwrap();
        fs::create_dir(g("objects")).unwrap();
        fs::create_dir(g("refs")).unwrap();
        fs::write(g("HEAD"), "ref: refs/heads/main").unwrap();
        fs::rename(g(""), format!("{root}/p/.git")).unwrap();
    };
    let opened = |scene: &str| {
        let (root, state) = (place.join(scene).join("root"), place.join(scene).join("state"));
        let mut watcher = Watcher::new(&state).unwrap();
        watcher.add_sandbox("s", AutostartRules::default()).unwrap();
        let root = root.to_str().unwrap().to_owned();
        watcher.open_root("s", &root).unwrap();
        plant(&root);
        (watcher, state, root)
    };
    // Only the new folders were moved.
    let (mut watcher, _, root) = opened("seen");
    assert_eq!(summarize(&root, &finish(&mut watcher, "s")), ["quarantined p/.git/hooks"]);
    assert_eq!(fs::read_to_string(format!("{root}/p/kept")).unwrap(), "text");
    assert!(fs::exists(format!("{root}/p/.git/refs")).unwrap());
    // Without an event, the file may have existed before, so it is reported and stays in place.
    let (watcher, state, root) = opened("unseen");
    drop(watcher);
    let swept = finish_interrupted(&mut Watcher::new(&state).unwrap());
    let [(_, found)] = swept.as_slice() else { panic!("{swept:?}") };
    let findings = summarize(&root, found);
    let expected =
        format!("unfinished failed to move the new file `{root}/p/.git/hooks/pre-commit` to quarantine");
    assert!(matches!(findings.as_slice(), [one] if one.starts_with(&expected)), "{findings:?}");
    assert!(fs::exists(format!("{root}/p/.git/hooks/pre-commit")).unwrap());
}

#[test]
fn closed_folder_is_moved_to_another_file_system() {
    let scene = Scene::listed();
    let state = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(device(state.path()), device(&scene.at("root")));
    scene.write("root/hooks/pre-commit", "evil");
    mode(&scene, "root/hooks", 0o555);
    let to = quarantine(&state.path().join("state"), &scene.text("root/hooks/pre-commit")).unwrap();
    assert!(to.starts_with("/dev/shm/"), "{to}");
    assert_eq!(fs::read_to_string(to).unwrap(), "evil");
    assert_eq!(fs::read_dir(scene.at("root/hooks")).unwrap().count(), 0);
    assert_eq!(mode_of(&scene, "root/hooks"), 0o555);
}

#[test]
fn hook_in_a_closed_folder_is_quarantined() {
    let mut scene = Scene::guarded();
    scene.open();
    scene.write("root/p/g/hk2/pre-commit", "evil");
    // A folder's owner can rename it regardless of its mode.
    fs::rename(scene.at("root/p/g/hk2"), scene.at("root/p/g/hooks")).unwrap();
    mode(&scene, "root/p/g/hooks", 0o555);
    scene.write("root/p/g/HEADX", "ref: refs/heads/main");
    fs::create_dir(scene.at("root/p/g/objects")).unwrap();
    fs::create_dir(scene.at("root/p/g/refs")).unwrap();
    fs::rename(scene.at("root/p/g"), scene.at("root/p/.git")).unwrap();
    fs::rename(scene.at("root/p/.git/HEADX"), scene.at("root/p/.git/HEAD")).unwrap();
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined p/.git/hooks/pre-commit"]);
    assert!(!scene.exists("root/p/.git/hooks/pre-commit"));
    // The folder's mode is restored.
    assert_eq!(mode_of(&scene, "root/p/.git/hooks"), 0o555);
    assert_eq!(scene.finish(), []);
}

#[test]
fn settings_in_a_closed_folder_are_quarantined_regardless_of_mode() {
    for shut in [0o555, 0o111, 0o444, 0o000, 0o311] {
        let mut scene = Scene::listed();
        scene.open();
        scene.write("root/p/c/settings.json", HOOKS);
        fs::rename(scene.at("root/p/c"), scene.at("root/p/.claude")).unwrap();
        mode(&scene, "root/p/.claude", shut);
        let root = scene.root();
        assert_eq!(
            summarize(&root, &scene.wait_for_findings()),
            ["quarantined p/.claude/settings.json"],
            "{shut:o}"
        );
        assert_eq!(mode_of(&scene, "root/p/.claude"), shut);
        assert_eq!(scene.finish(), [], "{shut:o}");
        mode(&scene, "root/p/.claude", 0o755);
        assert!(!scene.exists("root/p/.claude/settings.json"));
    }
}

#[test]
fn final_check_enters_nested_closed_folders() {
    let mut scene = Scene::listed();
    scene.open();
    scene.write("root/a/b/c/.mcp.json", SERVERS);
    for (folder, shut) in [("root/a/b/c", 0o555), ("root/a/b", 0o000), ("root/a", 0o400), ("root", 0o111)] {
        mode(&scene, folder, shut);
    }
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.finish()), ["quarantined a/b/c/.mcp.json"]);
    assert_eq!(mode_of(&scene, "root"), 0o111);
    for (folder, shut) in [("root", 0o111), ("root/a", 0o400), ("root/a/b", 0), ("root/a/b/c", 0o555)] {
        assert_eq!(mode_of(&scene, folder), shut, "{folder}");
        mode(&scene, folder, 0o755);
    }
    assert!(!scene.exists("root/a/b/c/.mcp.json"));
}

#[test]
fn closed_folder_can_be_moved_as_a_whole() {
    let mut scene = Scene::strict();
    scene.open();
    scene.write("root/x/settings.json", "{}");
    mode(&scene, "root/x", 0o555);
    // Renaming a folder within its parent needs no access to the folder itself.
    fs::rename(scene.at("root/x"), scene.at("root/.vscode")).unwrap();
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined .vscode"]);
    assert!(!scene.exists("root/.vscode"));
    let kept = fs::read_dir(scene.at("state/quarantine")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join(".vscode/settings.json")).unwrap(), "{}");
    fs::set_permissions(kept.join(".vscode"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn modes_set_by_the_user_are_restored() {
    let mut scene = Scene::listed();
    scene.write("root/mine/.mcp.json", SERVERS);
    scene.write("root/read/file", "text");
    mode(&scene, "root/mine", 0o000);
    mode(&scene, "root/read", 0o555);
    scene.open();
    let root = scene.root();
    let found = summarize(&root, &scene.finish());
    assert!(found.iter().all(|found| found.starts_with("unfinished")), "{found:?}");
    assert_eq!([mode_of(&scene, "root/mine"), mode_of(&scene, "root/read")], [0o000, 0o555]);
    mode(&scene, "root/mine", 0o755);
    assert_eq!(scene.read("root/mine/.mcp.json"), SERVERS);
    assert_eq!(scene.read("root/read/file"), "text");
}
