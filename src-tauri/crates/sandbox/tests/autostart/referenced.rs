//! Tests that files to which configurations and symlinks refer are read-only, so the user's git runs no program
//! written by a server.
//!
//! - The server writes to every path that is not read-only. The user then runs git with the user's own configuration.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, GitConfig};

use crate::scene::{Scene, git, repository, summarize};

/// Home directory with a git configuration, a repository in a root, and a server that attacks it.
struct Attack {
    scene: Scene,
    closed: Vec<String>,
}

impl Attack {
    /// Creates the scene. `prepare` adds files before the root becomes writable.
    fn new(gitconfig: &str, prepare: impl FnOnce(&Scene)) -> Self {
        Self::new_with(|scene| {
            prepare(scene);
            gitconfig.to_owned()
        })
    }

    /// Creates the scene. `prepare` returns a git configuration, which can refer to paths in the scene.
    fn new_with(prepare: impl FnOnce(&Scene) -> String) -> Self {
        let mut scene = Scene::listed();
        repository(&scene, "root/repo");
        let gitconfig = prepare(&scene);
        scene
            .write("home/.gitconfig", &format!("[user]\n\tname = Me\n\temail = me@example.org\n{gitconfig}"));
        let home = Some(scene.text("home"));
        scene.watcher.add_sandbox("home", AutostartRules { home, ..AutostartRules::default() }).unwrap();
        let root = scene.root();
        let closed = scene.watcher.open_root("home", &root).unwrap();
        let closed = closed.into_iter().map(|path| path.replacen(&format!("{root}/"), "", 1)).collect();
        Self { scene, closed }
    }

    /// Writes a program, as the server would. Returns `false` if the path is read-only.
    fn plants(&self, path: &str, text: &str) -> bool {
        let below = |closed: &String| Path::new(path).starts_with(closed);
        if self.closed.iter().any(below) {
            return false;
        }
        let path = format!("root/{path}");
        let _ = fs::remove_file(self.scene.at(&path));
        self.scene.write(&path, text);
        fs::set_permissions(self.scene.at(&path), fs::Permissions::from_mode(0o755)).unwrap();
        true
    }

    /// Returns a program that leaves a trace.
    fn evil(&self) -> String {
        format!("#!/bin/sh\ntouch '{}'\n", self.scene.text("evil"))
    }

    /// Runs git with the user's configuration.
    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.scene.at("root/repo"));
        git.env("HOME", self.scene.at("home")).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("XDG_CONFIG_HOME");
        let done = git.output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Runs the user's git during and after the sandbox, and checks that no program written by the server ran.
    fn withstood(mut self) -> Vec<String> {
        let mut found: Vec<Finding> =
            self.scene.watcher.process_events().into_iter().map(|(_, one)| one).collect();
        self.works();
        let (last, journal) = self.scene.watcher.finish("home");
        journal.unwrap().delete();
        found.extend(last);
        self.works();
        assert!(!self.scene.exists("evil"), "the server's program ran; closed: {:?}, {found:?}", self.closed);
        found.retain(|finding| matches!(finding, Finding::Quarantined { .. } | Finding::Unfinished { .. }));
        summarize(&self.scene.root(), &found)
    }

    fn works(&self) {
        self.git(&["status"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "by the user"]);
    }
}

#[test]
fn closes_relative_user_hooks_path_in_every_repository() {
    let hooks = "[core]\n\thooksPath = .githooks\n";
    let attack = Attack::new(hooks, |scene| scene.write("root/repo/.githooks/README", "mine"));
    assert!(attack.closed.contains(&"repo/.githooks".to_owned()), "{:?}", attack.closed);
    assert!(!attack.plants("repo/.githooks/pre-commit", &attack.evil()));
    assert_eq!(attack.withstood(), [""; 0]);
    // The hooks folder did not exist when the root was opened.
    let attack = Attack::new(hooks, |_| ());
    assert!(attack.plants("repo/.githooks/pre-commit", &attack.evil()));
    assert_eq!(attack.withstood(), ["quarantined repo/.githooks/pre-commit"]);
}

#[test]
fn closes_hook_link_targets_even_if_missing() {
    let link = |scene: &Scene, target: &str| {
        symlink(target, scene.at("root/repo/.git/hooks/pre-commit")).unwrap();
    };
    let attack = Attack::new("", |scene| {
        scene.write("root/repo/scripts/check", "#!/bin/sh\ntrue\n");
        fs::set_permissions(scene.at("root/repo/scripts/check"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("scripts", scene.at("root/repo/tools")).unwrap();
        link(scene, "../../tools/check");
    });
    for path in ["repo/scripts/check", "repo/tools"] {
        assert!(attack.closed.contains(&path.to_owned()), "{path}: {:?}", attack.closed);
        assert!(!attack.plants(path, &attack.evil()));
    }
    // The server is still allowed to write to a neighbouring file.
    assert!(attack.plants("repo/scripts/other", &attack.evil()));
    assert_eq!(attack.withstood(), [""; 0]);
    let attack = Attack::new("", |scene| link(scene, "../../scripts/check"));
    assert!(attack.plants("repo/scripts/check", &attack.evil()));
    assert_eq!(attack.withstood(), ["quarantined repo/scripts/check"]);
}

#[test]
fn closes_included_configurations_regardless_of_condition() {
    let evil = |attack: &Attack| {
        let program = attack.scene.text("home/evil-monitor");
        fs::write(&program, attack.evil()).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        format!("[core]\n\tfsmonitor = {program}\n")
    };
    for condition in [
        "include",
        "includeIf \"onbranch:main\"",
        "includeIf \"gitdir:**\"",
        "includeIf \"hasconfig:remote.*.url:https://example.org/**\"",
    ] {
        for is_there in [true, false] {
            let attack = Attack::new_with(|scene| {
                if is_there {
                    scene.write("root/repo/shared.gitconfig", "[user]\n\tname = Me\n");
                }
                format!("[{condition}]\n\tpath = {}/repo/shared.gitconfig\n", scene.root())
            });
            let text = evil(&attack);
            assert_eq!(attack.plants("repo/shared.gitconfig", &text), !is_there, "{condition}");
            attack.withstood();
        }
    }
}

#[test]
fn closes_programs_and_templates_in_the_tree() {
    for (setting, path) in [
        ("[core]\n\tfsmonitor = ROOT/repo/tools/monitor\n", "repo/tools/monitor"),
        ("[core]\n\teditor = sh ROOT/repo/edit.sh\n", "repo/edit.sh"),
        ("[filter \"x\"]\n\tclean = ROOT/repo/tools/clean %f\n", "repo/tools/clean"),
        ("[init]\n\ttemplateDir = ROOT/repo/template\n", "repo/template/hooks/pre-commit"),
        ("[core]\n\thooksPath = ROOT/repo/hooks\n", "repo/hooks/pre-commit"),
    ] {
        let attack = Attack::new_with(|scene| {
            scene.write(&format!("root/{path}"), "#!/bin/sh\ncat >/dev/null\n");
            setting.replace("ROOT", &scene.root())
        });
        assert!(!attack.plants(path, &attack.evil()), "{setting}: {:?}", attack.closed);
        assert_eq!(attack.withstood(), [""; 0], "{setting}");
    }
}

#[test]
fn closes_startup_files_linked_into_a_root() {
    let attack = Attack::new("", |scene| {
        for (path, link) in [
            ("root/dotfiles/gitconfig-more", "home/.config/git/config"),
            ("root/dotfiles/zshrc", "home/.zshrc"),
            ("root/dotfiles/fish/config.fish", "home/.config/fish/config.fish"),
        ] {
            scene.write(path, "");
            fs::create_dir_all(scene.at(link).parent().unwrap()).unwrap();
            symlink(scene.at(path), scene.at(link)).unwrap();
        }
        scene.write("root/dotfiles/nvim/init.lua", "");
        symlink(scene.at("root/dotfiles/nvim"), scene.at("home/.config/nvim")).unwrap();
        scene.write("root/dotfiles/README", "");
    });
    for path in ["gitconfig-more", "zshrc", "fish/config.fish", "nvim/init.lua"] {
        assert!(!attack.plants(&format!("dotfiles/{path}"), "evil"), "{path}: {:?}", attack.closed);
    }
    assert!(attack.plants("dotfiles/README", "mine"));
    assert_eq!(attack.withstood(), [""; 0]);
}

#[test]
fn repositories_around_and_elsewhere_refer_into_the_root() {
    let mut scene = Scene::listed();
    repository(&scene, "around");
    scene.write("around/scripts/check", "");
    symlink("../../scripts/check", scene.at("around/.git/hooks/pre-commit")).unwrap();
    scene.git("around", &["worktree", "add", "-q", "../tree"]);
    scene.git("around", &["config", "core.fsmonitor", "scripts/monitor"]);
    scene.write("around/scripts/monitor", "");
    for (root, expected) in [
        ("around/scripts", vec!["check", "monitor"]),
        // A linked worktree has its own configuration and uses the hooks of the main worktree.
        ("tree", vec![".git"]),
    ] {
        let root = scene.text(root);
        let closed = scene.watcher.open_root("s", &root).unwrap();
        let expected: Vec<String> = expected.into_iter().map(|name| format!("{root}/{name}")).collect();
        assert_eq!(closed, expected);
    }
    scene.write("tree/scripts/monitor", "evil");
    let tree = scene.text("tree");
    assert_eq!(summarize(&tree, &scene.wait_for_findings()), ["quarantined scripts/monitor"]);
}

#[test]
fn hooks_path_matches_git() {
    for (setting, folder) in [
        (vec!["core.hooksPath", ".githooks"], "repo/.githooks"),
        (vec!["core.hooksPath", "./a/../hooks/"], "repo/hooks"),
        (vec!["core.hooksPath", "../shared"], "shared"),
        (vec![], "repo/.git/hooks"),
    ] {
        let mut scene = Scene::guarded();
        repository(&scene, "root/repo");
        fs::create_dir_all(scene.at("root/repo/a")).unwrap();
        scene.write(&format!("root/{folder}/pre-commit"), "mine");
        if !setting.is_empty() {
            scene.git("root/repo", &[&["config"], &setting[..]].concat());
        }
        let says = git(&scene.at("root/repo"), &["rev-parse", "--git-path", "hooks"]);
        let says = scene.at("root/repo").join(says.trim()).canonicalize().unwrap();
        assert_eq!(says, scene.at(&format!("root/{folder}")).canonicalize().unwrap());
        let closed = scene.open();
        assert!(closed.contains(&folder.to_owned()), "{setting:?}: {closed:?}");
    }
}

#[test]
fn slow_configuration_is_reported_and_delays_nothing() {
    let mut scene = Scene::listed();
    scene.write("home/x", "");
    let fifo = scene.at("home/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    scene.write("home/.gitconfig", &format!("[include]\n\tpath = {}\n", fifo.display()));
    let rules = AutostartRules {
        home: Some(scene.text("home")),
        git_config: GitConfig::Guarded,
        ..AutostartRules::default()
    };
    scene.watcher.add_sandbox("home", rules).unwrap();
    let root = scene.root();
    scene.watcher.open_root("home", &root).unwrap();
    let findings: Vec<Finding> =
        scene.watcher.process_events().into_iter().map(|(_, finding)| finding).collect();
    assert_eq!(
        summarize(&root, &findings),
        [
            "unfinished git did not list your configuration in time, so the files it refers to are not protected"
        ]
    );
}
