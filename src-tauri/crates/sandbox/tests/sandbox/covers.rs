//! What is hidden or closed, when programs outside put something else in its place: the sandbox ends, and says why.

use std::fs;

use ironcurtain_sandbox::{Access, Ended, Event, Mount, Spec, View};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{PATIENCE, Place, Probe, probe};

/// What a program outside does in a folder that is granted for writing, and which path is uncovered by it.
type Change = (&'static str, fn(&Place), &'static str);

const CHANGES: &[Change] = &[
    ("a file renamed over it", |place| replace(place, "repo/.git/config"), "repo/.git/config"),
    ("an exchange", |place| exchange(place, "repo/.git/config", "repo/other"), "repo/.git/config"),
    (
        "renamed away, and made again",
        |place| {
            rename(place, "repo/.envrc", "repo/.envrc~");
            place.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "removed, and made again",
        |place| {
            fs::remove_file(place.path("repo/.envrc")).unwrap();
            place.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "a stand-in removed, and a file made",
        |place| {
            fs::remove_file(place.path("repo/.npmrc")).unwrap();
            place.file("repo/.npmrc");
        },
        "repo/.npmrc",
    ),
    (
        "a directory removed, and made again",
        |place| {
            fs::remove_dir_all(place.path("repo/.git/hooks")).unwrap();
            place.file("repo/.git/hooks/pre-commit");
        },
        "repo/.git/hooks",
    ),
    (
        "a directory renamed away, and another in its place",
        |place| {
            rename(place, "repo/.git/hooks", "repo/.git/old");
            rename(place, "hooks", "repo/.git/hooks");
        },
        "repo/.git/hooks",
    ),
    (
        "the whole repository's directory",
        |place| {
            rename(place, "repo/.git", "repo/.git.old");
            place.file("repo/.git/config");
        },
        "repo/.git",
    ),
    ("a file further below", |place| replace(place, "repo/a/b/.envrc"), "repo/a/b/.envrc"),
    (
        "a file further below, renamed away",
        |place| rename(place, "repo/a/b/.envrc", "repo/a/.envrc"),
        "repo/a/b/.envrc",
    ),
];

#[test]
fn a_sandbox_ends_when_what_is_closed_in_it_is_replaced() {
    for (what, change, path) in CHANGES {
        let place = repository();
        let mut probe = place.probe();
        probe.add(&place.path("repo"), Access::ReadWrite);
        let config = place.path("repo/.git/config");
        assert_eq!(probe.say(&format!("open-write {config}")), "err EROFS", "{what}");
        assert_eq!(probe.say(&format!("write {} x", place.path("repo/.git/HEAD"))), "ok", "{what}");
        change(&place);
        assert_eq!(ended_by(&mut probe), place.path(path), "{what}");
    }
}

#[test]
fn a_sandbox_ends_when_what_is_hidden_in_it_is_replaced() {
    let changes: [Change; 4] = [
        ("a file", |place| replace(place, "home/.netrc"), "home/.netrc"),
        (
            "a directory",
            |place| {
                rename(place, "home/.ssh", "home/.ssh.old");
                place.file("home/.ssh/id");
            },
            "home/.ssh",
        ),
        (
            "a folder around it",
            |place| {
                rename(place, "home/.config", "home/.config.old");
                place.file("home/.config/gcloud/token");
            },
            "home/.config/gcloud",
        ),
        (
            "a file in a folder that can be written",
            |place| replace(place, "home/project/.env"),
            "home/project/.env",
        ),
    ];
    for (what, change, path) in changes {
        let place = home();
        let mut probe = Probe::start(&host_read(&place));
        for hidden in ["home/.netrc", "home/project/.env"] {
            assert_eq!(probe.say(&format!("read {}", place.path(hidden))), "err EACCES", "{what}");
        }
        assert_eq!(probe.say(&format!("read {}", place.path("home/plain"))), "ok home/plain", "{what}");
        change(&place);
        assert_eq!(ended_by(&mut probe), place.path(path), "{what}");
    }
}

#[test]
fn an_ordinary_file_is_replaced_and_the_sandbox_sees_the_new_one() {
    let place = home();
    let mut probe = Probe::start(&host_read(&place));
    place.file("other");
    for name in ["home/plain", "home/project/plain"] {
        rename(&place, "other", name);
        assert_eq!(probe.say(&format!("read {}", place.path(name))), "ok other");
        place.file("other");
    }
    // What is written as it is, and what lies in a closed folder, is closed still.
    fs::write(place.path("home/project/.vscode/tasks.json"), "new").unwrap();
    replace(&place, "home/project/.vscode/tasks.json");
    fs::write(place.path("home/project/.envrc"), "new").unwrap();
    assert_eq!(probe.say(&format!("open-write {}", place.path("home/project/.envrc"))), "err EROFS");
    let tasks = place.path("home/project/.vscode/tasks.json");
    assert_eq!(probe.say(&format!("read {tasks}")), "ok new home/project/.vscode/tasks.json");
    assert_eq!(probe.say(&format!("open-write {tasks}")), "err EROFS");
    probe.stdin = None;
    assert_eq!(probe.end().status, Some(0));
}

#[test]
fn a_folder_that_the_server_renames_takes_its_closed_files_along() {
    let place = repository();
    let mut probe = place.probe();
    probe.add(&place.path("repo"), Access::ReadWrite);
    assert_eq!(probe.say(&format!("rename {} {}", place.path("repo/a"), place.path("repo/z"))), "ok");
    let moved = place.path("repo/z/b/.envrc");
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    assert_eq!(probe.say(&format!("mkdir {}", place.path("repo/a"))), "ok");
    // One that it is granted besides, and taken back, is no loss either.
    probe.add(&place.path("repo/z/b"), Access::ReadWrite);
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    probe.remove(&place.path("repo/z/b"));
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    replace(&place, "repo/z/b/.envrc");
    assert_eq!(ended_by(&mut probe), moved);
}

#[test]
fn what_was_renamed_over_a_closed_file_stays_and_what_the_server_makes_is_moved_away() {
    let place = repository();
    let mut spec = place.probe_spec();
    spec.mounts = vec![Mount::new(place.path("repo"), Access::ReadWrite)];
    let mut probe = Probe::start(&spec);
    assert_eq!(probe.say(&format!("mkdir {}", place.path("repo/new"))), "ok");
    assert_eq!(probe.say(&format!("write {} evil", place.path("repo/new/.envrc"))), "ok");
    replace(&place, "repo/.envrc");
    replace(&place, "repo/.git/config");
    let told = told(&mut probe);
    let [Event::Uncovered { .. }, Event::Quarantined { path, .. }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(*path, place.path("repo/new/.envrc"));
    for name in ["repo/.envrc", "repo/.git/config"] {
        assert_eq!(fs::read_to_string(place.path(name)).unwrap(), format!("new {name}"));
    }
}

/// A repository with files that start programs, here and below.
fn repository() -> Place {
    let place = Place::new();
    for name in [
        "repo/.git/config",
        "repo/.git/hooks/pre-commit",
        "repo/.envrc",
        "repo/a/b/.envrc",
        "repo/other",
        "hooks/x",
    ] {
        place.file(name);
    }
    place
}

/// A home with credentials, and a folder in it that can be written.
fn home() -> Place {
    let place = Place::new();
    for name in ["home/.netrc", "home/.ssh/id", "home/.config/gcloud/token", "home/plain"] {
        place.file(name);
    }
    for name in [".env", "plain", ".envrc", ".vscode/tasks.json"] {
        place.file(&format!("home/project/{name}"));
    }
    place
}

fn host_read(place: &Place) -> Spec {
    let denied = [".netrc", ".ssh", ".config/gcloud", "project/.env"];
    let mut spec = place.probe_spec();
    spec.view = View::HostRead {
        session_dir: Some(place.path("session")),
        deny_read: denied.iter().map(|name| place.path(&format!("home/{name}"))).collect(),
        allow_read: vec![],
        allow_write: vec![place.path("home/project")],
        deny_write: vec![],
        private_tmp: true,
    };
    spec.view.show_program(&probe());
    spec
}

/// As git, npm and most editors save.
fn replace(place: &Place, name: &str) {
    let beside = format!("{name}.lock");
    fs::write(place.path(&beside), format!("new {name}")).unwrap();
    rename(place, &beside, name);
}

fn rename(place: &Place, from: &str, to: &str) {
    fs::rename(place.path(from), place.path(to)).unwrap();
}

fn exchange(place: &Place, one: &str, other: &str) {
    renameat_with(CWD, place.path(one), CWD, place.path(other), RenameFlags::EXCHANGE).unwrap();
}

/// Waits for the end, which has to be because of a path.
fn ended_by(probe: &mut Probe) -> String {
    let told = told(probe);
    let Some(Event::Uncovered { path }) = told.first() else { panic!("{told:?}") };
    assert_eq!(probe.ended.recv_timeout(PATIENCE).unwrap(), Ended { status: Some(137), signal: None });
    path.clone()
}

/// What is told to the end, but for limits.
fn told(probe: &mut Probe) -> Vec<Event> {
    let told = std::iter::repeat_with(|| probe.control.event().unwrap());
    let told = told.take_while(|event| !matches!(event, Event::Exited { .. }));
    told.filter(|event| !matches!(event, Event::Limited { .. })).collect()
}
