//! Keep and Quarantine: only the user decides, through the control socket, and each decision is recorded.

use super::{end_session, entry_for, grant_folder_of, repository, undecided_files};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::world::{World, eventually};
use ironcurtain_protocol::{AutostartFileChoice, AutostartFileState, ErrorCode, Reply, Request};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn decide(world: &World, session: &str, path: &Path, choice: AutostartFileChoice) -> Reply {
    let (session, path) = (session.to_owned(), path.to_str().unwrap().to_owned());
    world.request(Request::DecideAutostartFile { session, path, choice })
}

#[track_caller]
fn refused(reply: &Reply, wanted: ErrorCode) {
    assert!(matches!(reply, Reply::Failed { code, .. } if *code == wanted), "{reply:?}");
}

#[test]
fn kept_and_quarantined_files_are_recorded_permanently() {
    let mut world = hostile::world();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    client.run(&repo, "echo all: > Makefile; echo '[tools]' > mise.toml").ok();
    let (makefile, mise) = (repo.join("Makefile"), repo.join("mise.toml"));
    eventually("the files are counted", TIMEOUT, || world.sessions()[0].left == 2);
    let record = end_session(&world, client);
    assert_eq!(undecided_files(&record), [makefile.to_str().unwrap(), mise.to_str().unwrap()]);
    // The decision survives a restart of the daemon.
    world.restart();
    let behind = || match world.request(Request::AutostartFiles) {
        Reply::AutostartFiles(sessions) => sessions,
        other => panic!("{other:?}"),
    };
    eventually("the file is listed again", TIMEOUT, || {
        behind().iter().any(|session| session.id == record.id)
    });

    let Reply::Session(kept) = decide(&world, &record.id, &makefile, AutostartFileChoice::Keep) else {
        panic!()
    };
    assert_eq!((entry_for(&kept, &makefile).state, makefile.exists()), (AutostartFileState::Kept, true));
    let Reply::Session(moved) = decide(&world, &record.id, &mise, AutostartFileChoice::Quarantine) else {
        panic!()
    };
    let moved_to = entry_for(&moved, &mise).moved_to.clone().unwrap();
    assert_eq!((entry_for(&moved, &mise).state, mise.exists()), (AutostartFileState::Quarantined, false));
    assert_eq!(fs::read_to_string(&moved_to).unwrap(), "[tools]\n");
    assert_eq!(behind(), []);
    // The user can decide once about each listed file, but not about other paths.
    for path in [&makefile, &mise, &repo.join("text")] {
        refused(&decide(&world, &record.id, path, AutostartFileChoice::Quarantine), ErrorCode::NotFound);
    }
    assert!(makefile.exists() && repo.join("text").exists());
    refused(&decide(&world, "../audit", &makefile, AutostartFileChoice::Keep), ErrorCode::NotFound);
    let decided = |line: &&str| line.contains(r#""event":"file-decided""#);
    assert_eq!(world.log().lines().filter(decided).count(), 2, "{}", world.log());
    assert!(world.audit().intact);
}

#[test]
fn quarantined_file_is_restored_or_deleted_by_the_user_after_session() {
    let world = hostile::world();
    let repo = repository(&world);
    let (agents, mise) = (repo.join(".mcp.json"), repo.join("mise.toml"));
    let quarantine = || match world.request(Request::Quarantine) {
        Reply::Quarantine(sessions) => sessions,
        other => panic!("{other:?}"),
    };
    assert_eq!(quarantine(), []);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    let evil = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;
    client.run(&repo, &format!("echo '[tools]' > mise.toml; echo '{evil}' > .mcp.json")).ok();
    eventually("the file is quarantined", TIMEOUT, || !agents.exists() && quarantine().len() == 1);
    let session = world.sessions()[0].id.clone();
    refused(&decide(&world, &session, &agents, AutostartFileChoice::PutBack), ErrorCode::Storage);
    assert!(!agents.exists(), "the server could change it again");
    let record = end_session(&world, client);
    decide(&world, &record.id, &mise, AutostartFileChoice::Quarantine);
    assert_eq!(quarantine()[0].files.len(), 2);

    // If a new file exists at the path, restoring is refused, but the two files can be exchanged.
    fs::write(&agents, "{}").unwrap();
    assert!(entry_for(&quarantine()[0], &agents).occupied);
    refused(&decide(&world, &record.id, &agents, AutostartFileChoice::PutBack), ErrorCode::Storage);
    assert_eq!(fs::read_to_string(&agents).unwrap(), "{}");
    let exchange = || {
        let Reply::Session(now) = decide(&world, &record.id, &agents, AutostartFileChoice::Exchange) else {
            panic!()
        };
        let kept = entry_for(&now, &agents).moved_to.clone().unwrap();
        (fs::read_to_string(&agents).unwrap(), fs::read_to_string(kept).unwrap())
    };
    assert_eq!(exchange(), (format!("{evil}\n"), "{}".to_owned()));
    assert_eq!(exchange(), ("{}".to_owned(), format!("{evil}\n")));
    let Reply::Session(gone) = decide(&world, &record.id, &agents, AutostartFileChoice::Delete) else {
        panic!()
    };
    assert_eq!(
        (entry_for(&gone, &agents).state, entry_for(&gone, &agents).moved_to.as_ref()),
        (AutostartFileState::Deleted, None)
    );
    assert_eq!(fs::read_to_string(&agents).unwrap(), "{}");

    // A folder that was replaced with a symlink no longer counts as the same folder.
    let other = world.path("elsewhere");
    fs::rename(&repo, &other).unwrap();
    symlink(&other, &repo).unwrap();
    refused(&decide(&world, &record.id, &mise, AutostartFileChoice::PutBack), ErrorCode::Storage);
    assert!(!other.join("mise.toml").exists());
    fs::remove_file(&repo).unwrap();
    fs::rename(&other, &repo).unwrap();
    let Reply::Session(back) = decide(&world, &record.id, &mise, AutostartFileChoice::PutBack) else {
        panic!()
    };
    assert_eq!(entry_for(&back, &mise).state, AutostartFileState::Returned);
    assert_eq!(fs::read_to_string(&mise).unwrap(), "[tools]\n");
    assert_eq!(quarantine(), []);
    for choice in [AutostartFileChoice::PutBack, AutostartFileChoice::Exchange, AutostartFileChoice::Delete] {
        refused(&decide(&world, &record.id, &mise, choice), ErrorCode::NotFound);
    }
    assert!(mise.exists());
    let decided = |line: &&str| line.contains(r#""event":"file-decided""#);
    assert_eq!(world.log().lines().filter(decided).count(), 5, "{}", world.log());
    assert!(world.audit().intact);
}

#[test]
fn quarantine_moves_the_symlink_not_its_target() {
    let world = hostile::world();
    let repo = repository(&world);
    let secret = world.file("docs/secret", "secret");
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    client.run(&repo, "mkdir sub && echo all: > sub/Makefile && echo all: > Makefile").ok();
    let record = end_session(&world, client);
    let (file, below) = (repo.join("Makefile"), repo.join("sub/Makefile"));
    assert_eq!(undecided_files(&record).len(), 2);
    // Symlinks replace the file and its parent folder.
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    fs::rename(repo.join("sub"), repo.join("other")).unwrap();
    fs::create_dir(world.path("docs/elsewhere")).unwrap();
    fs::write(world.path("docs/elsewhere/Makefile"), "mine").unwrap();
    symlink(world.path("docs/elsewhere"), repo.join("sub")).unwrap();
    decide(&world, &record.id, &file, AutostartFileChoice::Quarantine);
    refused(&decide(&world, &record.id, &below, AutostartFileChoice::Quarantine), ErrorCode::Storage);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_to_string(world.path("docs/elsewhere/Makefile")).unwrap(), "mine");
}

#[test]
fn agent_and_server_cannot_decide_about_autostart_files() {
    let world = hostile::world();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    client.run(&repo, "echo all: > Makefile").ok();
    eventually("the file is counted", TIMEOUT, || world.sessions()[0].left == 1);
    // The server can access neither the socket nor the record.
    client.call("connect", serde_json::json!({ "where": world.home.socket })).refused("os error");
    let record = world.home.sessions().join(&world.sessions()[0].id).join("record.json");
    client.sneak(&record).refused("os error 2)");
    assert!(record.is_file());
    // If the agent sends the request, it goes to the server and changes nothing here.
    let path = repo.join("Makefile");
    for method in ["decide-left", "ironcurtain/decide-left"] {
        let params = serde_json::json!({ "session": world.sessions()[0].id, "path": path, "choice": "keep" });
        client.request(method, params);
    }
    client.sneak(&path).ok();
    assert_eq!(world.sessions()[0].left, 1);
    assert!(!world.log().contains("file-decided"));
}
