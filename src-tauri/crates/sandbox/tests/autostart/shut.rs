//! Folders that who made them has shut by their mode. They are no obstacle for root: then these run again as an ordinary user.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
};

use ironcurtain_sandbox::autostart::{Rules, Watcher, quarantine};

use crate::scene::{Scene, short};

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;
const HOOKS: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"evil"}]}]}}"#;
/// No such user need exist.
const USER: u32 = 64_322;
/// The folder that root has made for the other run.
const FOREIGN: &str = "AUTOSTART_TEST_FOREIGN";

fn mode(scene: &Scene, path: &str, mode: u32) {
    fs::set_permissions(scene.at(path), Permissions::from_mode(mode)).unwrap();
}

fn mode_of(scene: &Scene, path: &str) -> u32 {
    fs::symlink_metadata(scene.at(path)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn all_of_it_holds_for_an_ordinary_user_too() {
    if !rustix::process::getuid().is_root() {
        // Then every other test of this suite has just shown it.
        return;
    }
    let place = tempfile::Builder::new().prefix("as").tempdir_in("/var/tmp").unwrap();
    chown(place.path(), Some(USER), Some(USER)).unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    // A folder of root's in one of theirs.
    let foreign = place.path().join("foreign");
    fs::create_dir_all(foreign.join("root/p/g/x")).unwrap();
    fs::write(foreign.join("root/p/g/x/pre-commit"), "evil").unwrap();
    for folder in ["", "root", "root/p", "root/p/g"] {
        chown(foreign.join(folder), Some(USER), Some(USER)).unwrap();
    }
    let own = place.path().join("autostart");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let id = USER.to_string();
    let run = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .arg(own)
        .args(["shut::", "--skip", "all_of_it_holds_for_an_ordinary_user_too"])
        .env("TMPDIR", place.path())
        .env(FOREIGN, &foreign)
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("shut::a_hook_in_a_folder_that_is_shut_is_moved_away ... ok"), "{said}");
    assert!(!foreign.join("root/p/.git/hooks").exists(), "{said}");
}

#[test]
fn the_nearest_folder_that_can_be_moved_is_moved_where_nothing_in_it_can_be() {
    // Only root can make a folder that is another's.
    let Ok(foreign) = std::env::var(FOREIGN) else { return };
    let root = format!("{foreign}/root");
    let mut watcher = Watcher::new(format!("{foreign}/state").as_ref()).unwrap();
    watcher.begin("s", Rules::default()).unwrap();
    watcher.open("s", &root).unwrap();
    fs::write(format!("{root}/p/kept"), "text").unwrap();
    let g = |name: &str| format!("{root}/p/g/{name}");
    fs::rename(g("x"), g("hooks")).unwrap();
    fs::create_dir(g("objects")).unwrap();
    fs::create_dir(g("refs")).unwrap();
    fs::write(g("HEAD"), "ref: refs/heads/main").unwrap();
    fs::rename(g(""), format!("{root}/p/.git")).unwrap();
    assert_eq!(short(&root, &watcher.finish("s")), ["quarantined p/.git/hooks"]);
    assert_eq!(fs::read_to_string(format!("{root}/p/kept")).unwrap(), "text");
    assert!(fs::exists(format!("{root}/p/.git/refs")).unwrap());
}

#[test]
fn what_is_shut_is_moved_to_another_file_system_too() {
    let scene = Scene::new(Rules::default());
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
fn a_hook_in_a_folder_that_is_shut_is_moved_away() {
    let mut scene = Scene::guarded();
    scene.open();
    scene.write("root/p/g/hk2/pre-commit", "evil");
    // A folder that is shut itself is no less the owner's to rename.
    fs::rename(scene.at("root/p/g/hk2"), scene.at("root/p/g/hooks")).unwrap();
    mode(&scene, "root/p/g/hooks", 0o555);
    scene.write("root/p/g/HEADX", "ref: refs/heads/main");
    fs::create_dir(scene.at("root/p/g/objects")).unwrap();
    fs::create_dir(scene.at("root/p/g/refs")).unwrap();
    fs::rename(scene.at("root/p/g"), scene.at("root/p/.git")).unwrap();
    fs::rename(scene.at("root/p/.git/HEADX"), scene.at("root/p/.git/HEAD")).unwrap();
    let root = scene.root();
    assert_eq!(short(&root, &scene.happened()), ["quarantined p/.git/hooks/pre-commit"]);
    assert!(!scene.exists("root/p/.git/hooks/pre-commit"));
    // The folder is as it was.
    assert_eq!(mode_of(&scene, "root/p/.git/hooks"), 0o555);
    assert_eq!(scene.finish(), []);
}

#[test]
fn settings_in_a_folder_that_is_shut_are_moved_away_at_once_however_it_is_shut() {
    for shut in [0o555, 0o111, 0o444, 0o000, 0o311] {
        let mut scene = Scene::new(Rules::default());
        scene.open();
        scene.write("root/p/c/settings.json", HOOKS);
        fs::rename(scene.at("root/p/c"), scene.at("root/p/.claude")).unwrap();
        mode(&scene, "root/p/.claude", shut);
        let root = scene.root();
        assert_eq!(short(&root, &scene.happened()), ["quarantined p/.claude/settings.json"], "{shut:o}");
        assert_eq!(mode_of(&scene, "root/p/.claude"), shut);
        assert_eq!(scene.finish(), [], "{shut:o}");
        mode(&scene, "root/p/.claude", 0o755);
        assert!(!scene.exists("root/p/.claude/settings.json"));
    }
}

#[test]
fn folders_that_are_shut_one_in_another_are_gone_through_in_the_end() {
    let mut scene = Scene::new(Rules::default());
    scene.open();
    scene.write("root/a/b/c/.mcp.json", SERVERS);
    for (folder, shut) in [("root/a/b/c", 0o555), ("root/a/b", 0o000), ("root/a", 0o400), ("root", 0o111)] {
        mode(&scene, folder, shut);
    }
    let root = scene.root();
    assert_eq!(short(&root, &scene.finish()), ["quarantined a/b/c/.mcp.json"]);
    assert_eq!(mode_of(&scene, "root"), 0o111);
    for (folder, shut) in [("root", 0o111), ("root/a", 0o400), ("root/a/b", 0), ("root/a/b/c", 0o555)] {
        assert_eq!(mode_of(&scene, folder), shut, "{folder}");
        mode(&scene, folder, 0o755);
    }
    assert!(!scene.exists("root/a/b/c/.mcp.json"));
}

#[test]
fn a_folder_that_is_moved_as_a_whole_may_be_shut() {
    let mut scene = Scene::strict();
    scene.open();
    scene.write("root/x/settings.json", "{}");
    mode(&scene, "root/x", 0o555);
    // A name in the same folder: that needs no right to the folder itself.
    fs::rename(scene.at("root/x"), scene.at("root/.vscode")).unwrap();
    let root = scene.root();
    assert_eq!(short(&root, &scene.happened()), ["quarantined .vscode"]);
    assert!(!scene.exists("root/.vscode"));
    let kept = fs::read_dir(scene.at("state/quarantine")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join(".vscode/settings.json")).unwrap(), "{}");
    fs::set_permissions(kept.join(".vscode"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_a_person_has_shut_stays_as_it_is() {
    let mut scene = Scene::new(Rules::default());
    scene.write("root/mine/.mcp.json", SERVERS);
    scene.write("root/read/file", "text");
    mode(&scene, "root/mine", 0o000);
    mode(&scene, "root/read", 0o555);
    scene.open();
    let root = scene.root();
    let found = short(&root, &scene.finish());
    assert!(found.iter().all(|found| found.starts_with("unfinished")), "{found:?}");
    assert_eq!([mode_of(&scene, "root/mine"), mode_of(&scene, "root/read")], [0o000, 0o555]);
    mode(&scene, "root/mine", 0o755);
    assert_eq!(scene.read("root/mine/.mcp.json"), SERVERS);
    assert_eq!(scene.read("root/read/file"), "text");
}
