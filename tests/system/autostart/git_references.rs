//! User-level git configuration and hooks that refer to files in a granted folder. Git never runs what a server wrote
//! to these files.

use super::{end_session, git, grant_folder_of, repository};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::world::{World, eventually};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A git configuration that makes git run or include a file in the repository.
struct Way {
    /// The user's git configuration. `REPO` stands for the path of the repository.
    gitconfig: &'static str,
    /// Path of the file, relative to the repository.
    target: &'static str,
    /// Content of the file before and after the server's change. `EVIL` stands for a command that leaves a trace.
    before: &'static str,
    after: &'static str,
}

const HOOK: &str = "#!/bin/sh\necho own >> \"$HOME/own\"\n";
const PROGRAM: &str = "#!/bin/sh\ntouch EVIL\n";

const WAYS: [Way; 4] = [
    Way {
        gitconfig: "[core]\n\thooksPath = .githooks\n",
        target: ".githooks/pre-commit",
        before: HOOK,
        after: PROGRAM,
    },
    Way { gitconfig: "", target: "scripts/check", before: HOOK, after: PROGRAM },
    Way {
        gitconfig: "[includeIf \"onbranch:main\"]\n\tpath = REPO/shared.gitconfig\n",
        target: "shared.gitconfig",
        before: "[alias]\n\tst = status\n",
        after: "[core]\n\tfsmonitor = touch EVIL; false\n",
    },
    Way {
        gitconfig: "[core]\n\tfsmonitor = REPO/tools/monitor\n",
        target: "tools/monitor",
        before: HOOK,
        after: PROGRAM,
    },
];

impl Way {
    fn prepare(&self, world: &World, is_there: bool) -> PathBuf {
        let repo = repository(world);
        if is_there {
            fs::create_dir_all(repo.join(self.target).parent().unwrap()).unwrap();
            write(&repo.join(self.target), self.before);
        }
        if self.target == "scripts/check" {
            symlink("../../scripts/check", repo.join(".git/hooks/pre-commit")).unwrap();
        }
        let gitconfig = self.gitconfig.replace("REPO", repo.to_str().unwrap());
        fs::write(world.home.user_home.join(".gitconfig"), gitconfig).unwrap();
        repo
    }

    /// Returns the script that the server uses to write `after`.
    fn attack(&self, world: &World) -> String {
        let after = self.after.replace("EVIL", evil(world).to_str().unwrap());
        let target = self.target;
        // Replaces the file in one step, because the file may be quarantined as soon as it exists.
        let write = format!("printf '%s' '{after}' > new && chmod +x new");
        format!("mkdir -p \"$(dirname {target})\" && {write} && {{ mv new {target} || cat new > {target}; }}")
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn evil(world: &World) -> PathBuf {
    world.path("evil")
}

fn works(world: &World, repo: &Path) {
    git(world, repo, &["status"]);
    git(world, repo, &["commit", "-q", "--allow-empty", "-m", "by the user"]);
}

#[test]
fn files_referenced_by_user_git_config_are_read_only_and_still_run() {
    for way in &WAYS {
        let world = hostile::world();
        let repo = way.prepare(&world, true);
        let mut client = world.connect("hostile");
        grant_folder_of(&world, &mut client, &repo.join("text"));
        client.run(&repo, &way.attack(&world)).refused("Read-only file system");
        // Other files in the folder are writable.
        client.run(&repo, "mkdir -p scripts && echo x > scripts/other").ok();
        works(&world, &repo);
        end_session(&world, client);
        works(&world, &repo);
        assert!(!evil(&world).exists(), "{}", way.target);
        assert_eq!(fs::read_to_string(repo.join(way.target)).unwrap(), way.before);
        assert_eq!(world.path("own").exists(), way.before == HOOK, "{}", way.target);
    }
}

#[test]
fn files_created_at_git_referenced_paths_are_not_run() {
    for way in &WAYS {
        let world = hostile::world();
        let repo = way.prepare(&world, false);
        let mut client = world.connect("hostile");
        grant_folder_of(&world, &mut client, &repo.join("text"));
        client.run(&repo, &way.attack(&world)).ok();
        eventually("the planted file is neutralized", TIMEOUT, || {
            !fs::read_to_string(repo.join(way.target)).is_ok_and(|text| text.contains("evil"))
        });
        works(&world, &repo);
        end_session(&world, client);
        works(&world, &repo);
        assert!(!evil(&world).exists(), "{}", way.target);
    }
}
