//! Common setup tasks that users give to agents: they succeed, and their results are kept.

use super::{
    end_session, entry_for, git, grant_folder_of, repository, undecided_files, world_with_guarded_git_config,
};
use crate::world::installed;
use ironcurtain_protocol::AutostartFileState;
use std::fs;
use std::path::Path;

#[test]
fn requested_project_setup_works_and_autostart_files_are_listed() {
    let world = world_with_guarded_git_config();
    let repo = repository(&world);
    let above = repo.parent().unwrap();
    fs::write(above.join("plan"), "scribbled").unwrap();
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &above.join("plan"));
    client.run(above, "git clone -q repo copy").ok();
    client.run(&repo, "git remote add origin https://example.org/x.git").ok();
    client.run(&repo, "git config user.name Lovelace").ok();
    client.run(&repo, "npm init -y --silent && npm pkg set scripts.prepare=husky").ok();
    client.run(&repo, "mkdir .husky && echo 'npm test' > .husky/pre-commit").ok();
    client.run(&repo, "mkdir .vscode && echo '{ \"editor.tabSize\": 2 }' > .vscode/settings.json").ok();
    client.run(&repo, "echo '*.png binary' > .gitattributes").ok();
    client.run(&repo, "git add -A && git commit -q -m second").ok();
    let record = end_session(&world, client);

    assert_eq!(git(&world, &above.join("copy"), &["log", "--format=%s"]), "first\n");
    assert_eq!(git(&world, &repo, &["remote", "get-url", "origin"]), "https://example.org/x.git\n");
    assert_eq!(git(&world, &repo, &["log", "--format=%s by %an", "-1"]), "second by Lovelace\n");
    assert_eq!(git(&world, &repo, &["status", "--porcelain"]), "");
    assert!(fs::read_to_string(repo.join("package.json")).unwrap().contains("\"prepare\": \"husky\""));
    let listed = [".gitattributes", ".husky/pre-commit", ".vscode/settings.json", "package.json"];
    let listed = listed.map(|name| repo.join(name));
    assert_eq!(
        undecided_files(&record),
        listed.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>()
    );
    assert!(listed.iter().all(|path| path.is_file()));
    assert!(record.files.iter().all(|file| file.state == AutostartFileState::Undecided), "{record:?}");
    let hook = entry_for(&record, &listed[1]);
    assert_eq!((hook.when.as_str(), hook.is_new), ("when you commit in this repository", true));
    assert!(hook.diff.as_ref().unwrap().contains("npm test"), "{hook:?}");
    for path in &listed {
        let named = format!(r#""event":"file-left","summary":"the server hostile left `{}`"#, path.display());
        assert!(world.log().contains(&named), "{named}");
    }
}

#[test]
fn git_config_is_read_only_and_git_works() {
    let world = crate::hostile::world();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    assert_eq!(client.run(&repo, "git config user.name").ok(), "Ada\n");
    client.run(&repo, "git config user.name Lovelace").refused("could not write config file");
    client.run(&repo, "echo made > made && git add -A && git commit -q -m second").ok();
    client.run(&repo, "git branch side && git checkout -q side && git stash list && git gc -q").ok();
    end_session(&world, client);
    assert_eq!(git(&world, &repo, &["log", "--format=%s by %an", "-1"]), "second by Ada\n");
}

#[test]
fn adding_husky_keeps_files_but_does_not_enable_hooks() {
    let world = world_with_guarded_git_config();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    fs::write(repo.join(".gitignore"), "ignored\nnode_modules\n").unwrap();
    copy(&installed("npm").join("node_modules/husky"), &repo.join("node_modules/husky"));
    client.run(&repo, "node node_modules/husky/bin.js && echo 'touch ran' > .husky/pre-commit").ok();
    let record = end_session(&world, client);

    let config = repo.join(".git/config");
    let put_back = entry_for(&record, &config);
    assert_eq!(put_back.state, AutostartFileState::PutBack);
    assert!(world.log().contains("core.hookspath"), "{record:?}");
    let hook = repo.join(".husky/pre-commit");
    assert_eq!(entry_for(&record, &hook).state, AutostartFileState::Undecided);
    assert_eq!(fs::read_to_string(&hook).unwrap(), "touch ran\n");
    git(&world, &repo, &["commit", "-q", "--allow-empty", "-m", "second"]);
    assert!(!repo.join("ran").exists());
    // The hooks run after the user has enabled them.
    git(&world, &repo, &["config", "core.hooksPath", ".husky/_"]);
    git(&world, &repo, &["commit", "-q", "--allow-empty", "-m", "third"]);
    assert!(repo.join("ran").exists());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
