//! Tests that repositories and their files are found as git finds them, or reported as unknown.

use super::parts::{GITHUB, LEGACY, NOT_PLAIN, ORIGIN};
use super::wire::{Wire, remote_target};
use super::*;

const EVIL: &str = "https://evil.example/x";
const EVIL_ORIGIN: &str = "[remote \"origin\"]\n\turl = https://evil.example/x\n";

/// Creates a folder with the named parts of a repository and a different origin.
fn make(user: &TestUser, folder: &str, parts: &[&str]) {
    user.file(&format!("{folder}/config"), &format!("[core]\n\trepositoryformatversion = 0\n{EVIL_ORIGIN}"));
    for part in parts {
        match *part {
            "HEAD" => user.file(&format!("{folder}/HEAD"), "ref: refs/heads/main\n"),
            part => std::fs::create_dir_all(user.path(folder).as_path().join(part)).unwrap(),
        }
    }
}

#[test]
fn an_incomplete_repository_is_skipped_as_in_git() {
    let user = TestUser::new();
    user.config(ORIGIN);
    user.commit("repo");
    let wire = Wire::new(&user);
    let all: [(&[&str], &str); 6] = [
        (&[], GITHUB),
        (&["HEAD"], GITHUB),
        (&["HEAD", "objects"], GITHUB),
        (&["HEAD", "refs"], GITHUB),
        (&["objects", "refs"], GITHUB),
        (&["HEAD", "objects", "refs"], EVIL),
    ];
    for (at, (parts, expected)) in all.into_iter().enumerate() {
        let folder = format!("repo/{at}");
        make(&user, &folder, parts);
        assert_eq!(user.ask(&folder, RemoteUse::Fetch, Some("origin"), false), [expected], "{parts:?}");
        assert_eq!(wire.goes_to(&folder, &["fetch", "origin"]), [remote_target(expected)], "{parts:?}");
    }
}

#[test]
fn a_repository_with_files_in_place_of_folders_is_unknown() {
    let user = TestUser::new();
    user.config(ORIGIN);
    for odd in ["objects", "refs"] {
        let folder = format!("repo/{odd}");
        let other = if odd == "refs" { "objects" } else { "refs" };
        make(&user, &folder, &["HEAD", other]);
        // The file is executable, so only its type prevents git from entering it.
        user.program(&format!("{folder}/{odd}"), "");
        assert_eq!(user.ask(&folder, RemoteUse::Fetch, Some("origin"), false), [NOT_PLAIN], "{odd}");
    }
}

#[test]
fn worktree_settings_count_if_the_repository_enables_them() {
    let user = TestUser::new();
    user.commit("repo");
    user.file("repo/.git/config.worktree", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n");
    let wire = Wire::new(&user);
    for (extension, expected) in [("", GITHUB), ("false", GITHUB), ("true", EVIL)] {
        let extension = if extension.is_empty() { "noop" } else { &format!("worktreeConfig = {extension}") };
        user.config(&format!("{ORIGIN}[extensions]\n\t{extension}\n"));
        assert_eq!(user.push(None), [expected], "{extension}");
        assert_eq!(wire.goes_to("repo", &["push", "origin"]), [remote_target(expected)], "{extension}");
    }
    std::fs::remove_file(user.path("repo/.git/config.worktree").as_path()).unwrap();
    assert_eq!(user.push(None), [GITHUB]);
}

#[test]
fn any_legacy_remote_file_makes_the_repository_unknown() {
    let user = TestUser::new();
    user.config(ORIGIN);
    for legacy in ["remotes", "branches"] {
        let folder = format!("repo/.git/{legacy}");
        let _ = std::fs::remove_dir_all(user.path(&folder).as_path());
        assert_eq!(user.push(None), [GITHUB], "no {legacy}");
        std::fs::create_dir(user.path(&folder).as_path()).unwrap();
        assert_eq!(user.push(None), [GITHUB], "empty {legacy}");
        user.file(&format!("{folder}/other"), "");
        assert_eq!(user.push(None), [LEGACY], "{legacy}");
        std::fs::remove_dir_all(user.path(&folder).as_path()).unwrap();
        user.file(&folder, "");
        assert_eq!(user.push(None), [NOT_PLAIN], "a file in place of {legacy}");
        std::fs::remove_file(user.path(&folder).as_path()).unwrap();
    }
}

#[test]
fn without_permission_to_read_no_remote_is_known() {
    let user = TestUser::new();
    let question = user.question("repo", RemoteUse::Push, Some("origin"));
    let refused = "(unknown: the repository's configuration is in a location that may not be read)";
    assert_eq!(question.all_unknown(), [(0, Fact::Remotes(vec![refused.to_owned()]))]);
    assert_eq!(question.repositories(), [user.path("repo")]);
}
