//! Autostart files: files planted by a server never run, setup that the user requested works, and the user's own
//! files are kept.
//!
//! - The tests run `git` on real repositories inside and outside the sandbox.

mod git_references;
mod planted_files;
mod project_setup;
mod recreated_files;
mod repository;
mod strict;
mod user_decisions;

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{AutostartFileState, AutostartFileView, Reply, Request, SessionRecordView};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a test environment whose server may write to git configuration files.
fn world_with_guarded_git_config() -> World {
    hostile::contained(&json!({ "gitConfig": "guarded" }))
}

/// Runs git as the user. Returns its output.
#[track_caller]
pub fn git(world: &World, dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(dir).args(args).env("HOME", &world.home.user_home).env("GIT_CONFIG_NOSYSTEM", "1");
    let done = git.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Creates a repository in its own folder, with one commit, an empty folder and an ignored file.
fn repository(world: &World) -> PathBuf {
    let dir = world.path("work/repo");
    fs::create_dir_all(dir.join("empty")).unwrap();
    git(world, &dir, &["init", "-q", "-b", "main"]);
    git(world, &dir, &["config", "user.name", "Ada"]);
    git(world, &dir, &["config", "user.email", "ada@example.org"]);
    fs::write(dir.join("text"), "scribbled").unwrap();
    fs::write(dir.join(".gitignore"), "ignored\n").unwrap();
    fs::write(dir.join("ignored"), "x").unwrap();
    git(world, &dir, &["add", "."]);
    git(world, &dir, &["commit", "-q", "-m", "first"]);
    dir
}

/// Grants write access to the file's folder for the session, by a call that writes the same content that
/// [`repository`] wrote.
fn grant_folder_of(world: &World, client: &mut Client, file: &Path) {
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": file })).ok();
}

/// Waits for the final scan of the session's folders and returns the session's record.
fn record(world: &World, session: &str) -> SessionRecordView {
    let mut found = None;
    eventually("the final scan completes", TIMEOUT, || {
        match world.request(Request::Session { session: session.to_owned() }) {
            Reply::Session(record) => {
                let is_over = record.ended_ms.is_some() && !record.is_scanning;
                found = Some(record);
                is_over
            }
            other => panic!("{other:?}"),
        }
    });
    found.unwrap()
}

/// Closes the only session. Returns its record.
fn end_session(world: &World, client: Client) -> SessionRecordView {
    let sessions = world.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    client.hang_up();
    record(world, &sessions[0].id)
}

/// Returns the record's entry for this path.
#[track_caller]
fn entry_for<'a>(record: &'a SessionRecordView, path: &Path) -> &'a AutostartFileView {
    let found = record.files.iter().find(|file| Path::new(&file.path) == path);
    found.unwrap_or_else(|| panic!("{} is not in {record:?}", path.display()))
}

/// Returns the paths in the record that still need the user's decision.
fn undecided_files(record: &SessionRecordView) -> Vec<&str> {
    let mut paths: Vec<&str> = record
        .files
        .iter()
        .filter(|file| file.state == AutostartFileState::Undecided)
        .map(|file| file.path.as_str())
        .collect();
    paths.sort_unstable();
    paths
}
