//! The Python git server, and the `git` program that it runs.

use super::{allowed, world};
use crate::autostart::git;
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Creates a repository with one commit, an unstaged change and a second branch.
fn repository(world: &World, name: &str) -> PathBuf {
    let dir = world.path(name);
    fs::create_dir_all(&dir).unwrap();
    git(world, &dir, &["init", "-q", "-b", "main"]);
    git(world, &dir, &["config", "user.name", "Ada"]);
    git(world, &dir, &["config", "user.email", "ada@example.org"]);
    fs::write(dir.join("text"), "one\n").unwrap();
    git(world, &dir, &["add", "."]);
    git(world, &dir, &["commit", "-q", "-m", "first"]);
    git(world, &dir, &["branch", "side"]);
    fs::write(dir.join("text"), "two\n").unwrap();
    dir
}

fn at(repo: &Path) -> Value {
    json!({ "repo_path": repo })
}

fn with(repo: &Path, key: &str, value: Value) -> Value {
    let mut arguments = at(repo);
    arguments[key] = value;
    arguments
}

#[test]
fn git_server_reads_stages_and_commits_in_granted_repository() {
    let world = world("git");
    let repo = repository(&world, "work");
    let mut client = world.connect("git");
    let status = allowed(&world, &mut client, "git_status", at(&repo));
    assert!(status.ok().contains("modified:   text"), "{}", status.text);
    let diff = allowed(&world, &mut client, "git_diff_unstaged", at(&repo));
    assert!(diff.ok().contains("+two"), "{}", diff.text);
    allowed(&world, &mut client, "git_add", with(&repo, "files", json!(["text"]))).ok();
    allowed(&world, &mut client, "git_commit", with(&repo, "message", json!("second"))).ok();
    let log = allowed(&world, &mut client, "git_log", at(&repo));
    assert!(log.ok().contains("second") && log.text.contains("Ada"), "{}", log.text);
    assert_eq!(git(&world, &repo, &["log", "--format=%s", "-1"]), "second\n");
    assert_eq!(git(&world, &repo, &["status", "--porcelain"]), "");
}

#[test]
fn git_commit_author_comes_from_user_config() {
    let world = world("git");
    let repo = repository(&world, "work");
    git(&world, &repo, &["config", "--unset", "user.name"]);
    fs::write(world.path(".gitconfig"), "[user]\n\tname = Lovelace\n").unwrap();
    let mut client = world.connect("git");
    allowed(&world, &mut client, "git_add", with(&repo, "files", json!(["text"]))).ok();
    allowed(&world, &mut client, "git_commit", with(&repo, "message", json!("second"))).ok();
    assert_eq!(git(&world, &repo, &["log", "--format=%an", "-1"]), "Lovelace\n");
}

#[test]
fn ungranted_repository_is_refused_and_invisible() {
    let world = world("git");
    let (repo, secret) = (repository(&world, "work"), repository(&world, "secret"));
    let mut client = world.connect("git");
    world.user.will(Next::Deny);
    client.call("git_log", at(&secret)).refused("the user denied this call");
    // The folder's `.git` refers to the other repository, which is not mounted, so git cannot find it.
    let linked = world.path("linked");
    fs::create_dir(&linked).unwrap();
    fs::write(linked.join(".git"), format!("gitdir: {}\n", secret.join(".git").display())).unwrap();
    world.user.asked();
    allowed(&world, &mut client, "git_log", at(&linked)).refused(linked.to_str().unwrap());
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("git_log", at(&secret)).ok();
    world.user.asked();
    let log = allowed(&world, &mut client, "git_log", at(&linked));
    assert!(log.ok().contains("first"), "{}", log.text);
    allowed(&world, &mut client, "git_log", at(&repo)).ok();
}

#[test]
fn read_granted_repository_cannot_be_changed() {
    let world = world("git");
    let repo = repository(&world, "work");
    let mut client = world.connect("git");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("git_log", at(&repo)).ok();
    assert_eq!(world.user.asked().len(), 1);
    world.user.will(Next::Deny);
    client.call("git_add", with(&repo, "files", json!(["text"]))).refused("the user denied this call");
    assert_eq!(git(&world, &repo, &["diff", "--cached", "--name-only"]), "");
}

#[test]
fn hook_run_by_git_server_cannot_change_hooks_or_git_config() {
    let world = world("git");
    let repo = repository(&world, "work");
    git(&world, &repo, &["checkout", "-q", "text"]);
    let hook = repo.join(".git/hooks/post-checkout");
    let script = "#!/bin/sh\n\
        exec 2> said\n\
        echo ran > ran\n\
        ( echo evil > .git/hooks/pre-push )\n\
        ( echo evil > .git/hooks/post-checkout )\n\
        git config core.pager evil\n\
        mv .git/hooks .git/elsewhere\n\
        exit 0\n";
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = fs::read_to_string(repo.join(".git/config")).unwrap();
    let mut client = world.connect("git");
    allowed(&world, &mut client, "git_checkout", with(&repo, "branch_name", json!("side"))).ok();
    assert_eq!(git(&world, &repo, &["branch", "--show-current"]), "side\n");
    assert_eq!(fs::read_to_string(repo.join("ran")).unwrap(), "ran\n");
    let said = fs::read_to_string(repo.join("said")).unwrap();
    assert_eq!(said.matches("Read-only file system").count(), 2, "{said}");
    assert_eq!(said.matches("busy").count(), 1, "{said}");
    assert!(!repo.join(".git/hooks/pre-push").exists() && !repo.join(".git/elsewhere").exists());
    assert_eq!(fs::read_to_string(&hook).unwrap(), script);
    eventually("the git configuration is restored", TIMEOUT, || {
        fs::read_to_string(repo.join(".git/config")).unwrap() == configuration
    });
    eventually("the restoration is recorded", TIMEOUT, || world.log().contains("`core.pager`"));
}
