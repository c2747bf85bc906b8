//! Tests that hidden and read-only files stay masked even if programs outside the sandbox replace them.

use std::fs;

use ironcurtain_sandbox::{
    ControlAnswer, ControlOp, Mount, MountAccess, MountRefusal, SandboxEvent, Spec, View,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Place, Probe, eventually, probe};

/// Change by a program outside the sandbox in a folder that is granted read-write: a name, a function that makes the
/// change, and the file that must be masked afterwards.
type Change = (&'static str, fn(&Place), &'static str);

/// Files in [`repository`] that must be read-only.
const CLOSED: [&str; 4] = ["repo/.git/config", "repo/.git/hooks", "repo/.envrc", "repo/a/b/.envrc"];

/// Changes that the kernel's mount table reports.
const REPLACED: &[Change] = &[
    ("a file renamed over it", |place| replace(place, "repo/.git/config"), "repo/.git/config"),
    ("a file further below", |place| replace(place, "repo/a/b/.envrc"), "repo/a/b/.envrc"),
];

/// Changes that the mount table does not fully report. The launcher requests a check for them.
const RENAMED: &[Change] = &[
    (
        "removed and recreated",
        |place| {
            fs::remove_file(place.path("repo/.envrc")).unwrap();
            place.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "a directory removed and recreated",
        |place| {
            fs::remove_dir_all(place.path("repo/.git/hooks")).unwrap();
            place.file("repo/.git/hooks/pre-commit");
        },
        "repo/.git/hooks/pre-commit",
    ),
    ("an exchange", |place| exchange(place, "repo/.git/config", "repo/other"), "repo/.git/config"),
    (
        "renamed away and recreated",
        |place| {
            rename(place, "repo/.envrc", "repo/.envrc~");
            place.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "a directory renamed away, and another in its place",
        |place| {
            rename(place, "repo/.git/hooks", "repo/.git/old");
            rename(place, "hooks", "repo/.git/hooks");
        },
        "repo/.git/hooks/x",
    ),
];

#[test]
fn closed_files_are_read_only_and_others_writable() {
    let place = repository();
    let mut probe = place.probe();
    grant(&mut probe, &place);
    for closed in ["repo/.git/config", "repo/.git/hooks/pre-commit", "repo/.envrc", "repo/a/b/.envrc"] {
        assert_eq!(probe.say(&format!("open-write {}", place.path(closed))), "err EROFS", "{closed}");
    }
    for open in ["repo/.git/HEAD", "repo/.gitattributes", "repo/a/.envrc"] {
        assert_eq!(probe.say(&format!("write {} x", place.path(open))), "ok", "{open}");
    }
    // Folders that programs find by name cannot be moved.
    let (git, elsewhere) = (place.path("repo/.git"), place.path("repo/elsewhere"));
    assert_eq!(probe.say(&format!("rename {git} {elsewhere}")), "err EBUSY");
}

#[test]
fn masks_create_nothing_in_granted_folders() {
    let place = repository();
    fs::create_dir(place.path("empty")).unwrap();
    let before = names(&place, "repo");
    let mut probe = place.probe();
    grant(&mut probe, &place);
    probe.add(&place.path("empty"), MountAccess::ReadWrite);
    assert_eq!(names(&place, "repo"), before);
    assert_eq!(names(&place, "empty"), [""; 0]);
    assert_eq!(names(&place, "session"), [""; 0]);
    probe.kill.kill();
    probe.end();
    assert_eq!(names(&place, "repo"), before);
}

#[test]
fn named_closed_file_is_writable() {
    let place = repository();
    let envrc = place.path("repo/.envrc");
    let mut probe = place.probe();
    grant(&mut probe, &place);
    let mount = Mount::new(&envrc, MountAccess::ReadWrite).of_file().closing(vec![envrc.clone()]);
    assert_eq!(probe.asked(mount.clone()), Err(MountRefusal::Protected));
    assert_eq!(probe.say(&format!("open-write {envrc}")), "err EROFS");
    assert_eq!(probe.asked(Mount { named: true, ..mount }), Ok(()));
    assert_eq!(probe.say(&format!("write {envrc} named")), "ok");
    assert_eq!(fs::read_to_string(&envrc).unwrap(), "named");
    // After the grant is removed, the file is read-only again.
    probe.remove(&envrc);
    assert_eq!(probe.say(&format!("open-write {envrc}")), "err EROFS");
}

#[test]
fn kept_paths_and_their_folders_cannot_be_moved() {
    let place = repository();
    let mut probe = place.probe();
    let kept = place.path("repo/a/b");
    let mount = Mount::new(place.path("repo"), MountAccess::ReadWrite).keeping(vec![kept.clone()]);
    assert_eq!(probe.asked(mount), Ok(()));
    assert_eq!(probe.say(&format!("write {kept}/new x")), "err EROFS");
    for (from, to) in [("repo/a/b", "repo/a/c"), ("repo/a", "repo/c")] {
        let (from, to) = (place.path(from), place.path(to));
        assert_eq!(probe.say(&format!("rename {from} {to}")), "err EBUSY", "{from}");
    }
    assert_eq!(probe.say(&format!("write {} x", place.path("repo/a/new"))), "ok");
    let inside =
        Mount { named: true, ..Mount::new(&kept, MountAccess::ReadWrite).keeping(vec![kept.clone()]) };
    assert_eq!(probe.asked(inside), Err(MountRefusal::Protected));
}

#[test]
fn replaced_closed_file_is_closed_again() {
    for (what, change, path) in REPLACED {
        let place = repository();
        let mut probe = place.probe();
        grant(&mut probe, &place);
        change(&place);
        eventually(what, || probe.say(&format!("open-write {}", place.path(path))) == "err EROFS");
        assert_eq!(probe.say(&format!("write {} x", place.path("repo/.git/HEAD"))), "ok", "{what}");
        let events = events(&mut probe);
        assert!(
            matches!(events.as_slice(), [SandboxEvent::Uncovered { hidden: false, .. }]),
            "{what}: {events:?}"
        );
    }
}

#[test]
fn recreated_file_is_closed_on_check() {
    for (what, change, path) in RENAMED {
        let place = repository();
        let mut probe = place.probe();
        grant(&mut probe, &place);
        change(&place);
        assert_eq!(probe.control.ask(ControlOp::Check).unwrap(), ControlAnswer::Checked);
        assert_eq!(probe.say(&format!("open-write {}", place.path(path))), "err EROFS", "{what}");
        let events = events(&mut probe);
        assert!(
            matches!(events.as_slice(), [SandboxEvent::Uncovered { hidden: false, .. }]),
            "{what}: {events:?}"
        );
    }
}

#[test]
fn replaced_hidden_file_is_hidden_again() {
    let changes: [Change; 4] = [
        ("a file", |place| replace(place, "home/.netrc"), "home/.netrc"),
        (
            "a directory",
            |place| {
                rename(place, "home/.ssh", "home/.ssh.old");
                place.file("home/.ssh/id");
            },
            "home/.ssh/id",
        ),
        (
            "a file that was removed before",
            |place| {
                fs::remove_file(place.path("home/.netrc")).unwrap();
                place.file("home/.netrc");
            },
            "home/.netrc",
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
        change(&place);
        assert_eq!(probe.control.ask(ControlOp::Check).unwrap(), ControlAnswer::Checked);
        assert_eq!(probe.say(&format!("read {}", place.path(path))), "err EACCES", "{what}");
        assert_eq!(probe.say(&format!("read {}", place.path("home/plain"))), "ok home/plain", "{what}");
        let events = events(&mut probe);
        assert!(
            matches!(events.as_slice(), [SandboxEvent::Uncovered { hidden: true, .. }]),
            "{what}: {events:?}"
        );
    }
}

#[test]
fn replaced_ordinary_file_is_visible() {
    let place = home();
    let mut probe = Probe::start(&host_read(&place));
    place.file("other");
    for name in ["home/plain", "home/project/plain"] {
        rename(&place, "other", name);
        assert_eq!(probe.say(&format!("read {}", place.path(name))), "ok other");
        place.file("other");
    }
    // Files that were written in place, or that are in a closed folder, are still read-only.
    fs::write(place.path("home/project/.vscode/tasks.json"), "new").unwrap();
    replace(&place, "home/project/.vscode/tasks.json");
    fs::write(place.path("home/project/.envrc"), "new").unwrap();
    assert_eq!(probe.say(&format!("open-write {}", place.path("home/project/.envrc"))), "err EROFS");
    let tasks = place.path("home/project/.vscode/tasks.json");
    assert_eq!(probe.say(&format!("read {tasks}")), "ok new home/project/.vscode/tasks.json");
    assert_eq!(probe.say(&format!("open-write {tasks}")), "err EROFS");
    assert_eq!(events(&mut probe), []);
}

#[test]
fn closed_files_move_with_a_renamed_folder() {
    let place = repository();
    let mut probe = place.probe();
    grant(&mut probe, &place);
    assert_eq!(probe.say(&format!("rename {} {}", place.path("repo/a"), place.path("repo/z"))), "ok");
    let moved = place.path("repo/z/b/.envrc");
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    assert_eq!(probe.say(&format!("mkdir {}", place.path("repo/a"))), "ok");
    // Granting and revoking an inner folder does not remove any mask.
    let inner = Mount::new(place.path("repo/z/b"), MountAccess::ReadWrite).closing(vec![moved.clone()]);
    assert_eq!(probe.asked(inner), Ok(()));
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    probe.remove(&place.path("repo/z/b"));
    assert_eq!(probe.say(&format!("open-write {moved}")), "err EROFS");
    assert_eq!(events(&mut probe), []);
    replace(&place, "repo/z/b/.envrc");
    eventually("closed again", || probe.say(&format!("open-write {moved}")) == "err EROFS");
    assert_eq!(events(&mut probe), [SandboxEvent::Uncovered { path: moved, hidden: false }]);
}

/// Creates a repository with files that start programs, at several depths.
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

fn grant(probe: &mut Probe, place: &Place) {
    let closed = CLOSED.iter().map(|name| place.path(name)).collect();
    assert_eq!(probe.asked(Mount::new(place.path("repo"), MountAccess::ReadWrite).closing(closed)), Ok(()));
}

/// Creates a home directory with credentials and a writable folder.
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
    spec.closed = [".envrc", ".vscode"].map(|name| place.path(&format!("home/project/{name}"))).into();
    spec
}

/// Replaces a file by renaming a different file over it, like git, npm and most editors.
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

/// Terminates the sandbox and returns its events since the start.
fn events(probe: &mut Probe) -> Vec<SandboxEvent> {
    let answer = probe.control.ask(ControlOp::List).unwrap();
    assert!(matches!(answer, ControlAnswer::Mounts { .. }), "{answer:?}");
    let events = probe.control.queued_events().into_iter();
    events.filter(|event| !matches!(event, SandboxEvent::Limited { .. })).collect()
}

fn names(place: &Place, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(dir)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
