//! Tests that hidden and read-only files stay masked even if programs outside the sandbox replace them.

use std::fs;

use ironcurtain_sandbox::{
    ControlAnswer, ControlOp, Mount, MountAccess, MountRefusal, SandboxEvent, Spec, View,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Fixture, Probe, eventually, probe};

/// Change by a program outside the sandbox in a folder that is granted read-write: a name, a function that makes the
/// change, and the file that must be masked afterwards.
type Change = (&'static str, fn(&Fixture), &'static str);

/// Files in [`repository`] that must be read-only.
const CLOSED: [&str; 4] = ["repo/.git/config", "repo/.git/hooks", "repo/.envrc", "repo/a/b/.envrc"];

/// Changes that the kernel's mount table reports.
const REPLACED: &[Change] = &[
    ("a file renamed over it", |fixture| replace(fixture, "repo/.git/config"), "repo/.git/config"),
    ("a file further below", |fixture| replace(fixture, "repo/a/b/.envrc"), "repo/a/b/.envrc"),
];

/// Changes that the mount table does not fully report. The launcher requests a check for them.
const RENAMED: &[Change] = &[
    (
        "removed and recreated",
        |fixture| {
            fs::remove_file(fixture.path("repo/.envrc")).unwrap();
            fixture.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "a directory removed and recreated",
        |fixture| {
            fs::remove_dir_all(fixture.path("repo/.git/hooks")).unwrap();
            fixture.file("repo/.git/hooks/pre-commit");
        },
        "repo/.git/hooks/pre-commit",
    ),
    ("an exchange", |fixture| exchange(fixture, "repo/.git/config", "repo/other"), "repo/.git/config"),
    (
        "renamed away and recreated",
        |fixture| {
            rename(fixture, "repo/.envrc", "repo/.envrc~");
            fixture.file("repo/.envrc");
        },
        "repo/.envrc",
    ),
    (
        "a directory renamed away, and another in its place",
        |fixture| {
            rename(fixture, "repo/.git/hooks", "repo/.git/old");
            rename(fixture, "hooks", "repo/.git/hooks");
        },
        "repo/.git/hooks/x",
    ),
];

#[test]
fn closed_files_are_read_only_and_others_writable() {
    let fixture = repository();
    let mut probe = fixture.probe();
    grant(&mut probe, &fixture);
    for closed in ["repo/.git/config", "repo/.git/hooks/pre-commit", "repo/.envrc", "repo/a/b/.envrc"] {
        assert_eq!(
            probe.send_command(&format!("open-write {}", fixture.path(closed))),
            "err EROFS",
            "{closed}"
        );
    }
    for open in ["repo/.git/HEAD", "repo/.gitattributes", "repo/a/.envrc"] {
        assert_eq!(probe.send_command(&format!("write {} x", fixture.path(open))), "ok", "{open}");
    }
    // Folders that programs find by name cannot be moved.
    let (git, elsewhere) = (fixture.path("repo/.git"), fixture.path("repo/elsewhere"));
    assert_eq!(probe.send_command(&format!("rename {git} {elsewhere}")), "err EBUSY");
}

#[test]
fn masks_create_nothing_in_granted_folders() {
    let fixture = repository();
    fs::create_dir(fixture.path("empty")).unwrap();
    let before = names(&fixture, "repo");
    let mut probe = fixture.probe();
    grant(&mut probe, &fixture);
    probe.add(&fixture.path("empty"), MountAccess::ReadWrite);
    assert_eq!(names(&fixture, "repo"), before);
    assert_eq!(names(&fixture, "empty"), [""; 0]);
    assert_eq!(names(&fixture, "session"), [""; 0]);
    probe.kill.kill();
    probe.wait();
    assert_eq!(names(&fixture, "repo"), before);
}

#[test]
fn named_closed_file_is_writable() {
    let fixture = repository();
    let envrc = fixture.path("repo/.envrc");
    let mut probe = fixture.probe();
    grant(&mut probe, &fixture);
    let mount = Mount::new(&envrc, MountAccess::ReadWrite).file_only().with_read_only(vec![envrc.clone()]);
    assert_eq!(probe.try_add_mount(mount.clone()), Err(MountRefusal::Protected));
    assert_eq!(probe.send_command(&format!("open-write {envrc}")), "err EROFS");
    assert_eq!(probe.try_add_mount(Mount { approved: true, ..mount }), Ok(()));
    assert_eq!(probe.send_command(&format!("write {envrc} named")), "ok");
    assert_eq!(fs::read_to_string(&envrc).unwrap(), "named");
    // After the grant is removed, the file is read-only again.
    probe.remove(&envrc);
    assert_eq!(probe.send_command(&format!("open-write {envrc}")), "err EROFS");
}

#[test]
fn kept_paths_and_their_folders_cannot_be_moved() {
    let fixture = repository();
    let mut probe = fixture.probe();
    let kept = fixture.path("repo/a/b");
    let mount = Mount::new(fixture.path("repo"), MountAccess::ReadWrite).with_pinned(vec![kept.clone()]);
    assert_eq!(probe.try_add_mount(mount), Ok(()));
    assert_eq!(probe.send_command(&format!("write {kept}/new x")), "err EROFS");
    for (from, to) in [("repo/a/b", "repo/a/c"), ("repo/a", "repo/c")] {
        let (from, to) = (fixture.path(from), fixture.path(to));
        assert_eq!(probe.send_command(&format!("rename {from} {to}")), "err EBUSY", "{from}");
    }
    assert_eq!(probe.send_command(&format!("write {} x", fixture.path("repo/a/new"))), "ok");
    let inside =
        Mount { approved: true, ..Mount::new(&kept, MountAccess::ReadWrite).with_pinned(vec![kept.clone()]) };
    assert_eq!(probe.try_add_mount(inside), Err(MountRefusal::Protected));
}

#[test]
fn replaced_closed_file_is_closed_again() {
    for (what, change, path) in REPLACED {
        let fixture = repository();
        let mut probe = fixture.probe();
        grant(&mut probe, &fixture);
        change(&fixture);
        eventually(what, || probe.send_command(&format!("open-write {}", fixture.path(path))) == "err EROFS");
        assert_eq!(
            probe.send_command(&format!("write {} x", fixture.path("repo/.git/HEAD"))),
            "ok",
            "{what}"
        );
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
        let fixture = repository();
        let mut probe = fixture.probe();
        grant(&mut probe, &fixture);
        change(&fixture);
        assert_eq!(probe.control.request(ControlOp::Check).unwrap(), ControlAnswer::Checked);
        assert_eq!(probe.send_command(&format!("open-write {}", fixture.path(path))), "err EROFS", "{what}");
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
        ("a file", |fixture| replace(fixture, "home/.netrc"), "home/.netrc"),
        (
            "a directory",
            |fixture| {
                rename(fixture, "home/.ssh", "home/.ssh.old");
                fixture.file("home/.ssh/id");
            },
            "home/.ssh/id",
        ),
        (
            "a file that was removed before",
            |fixture| {
                fs::remove_file(fixture.path("home/.netrc")).unwrap();
                fixture.file("home/.netrc");
            },
            "home/.netrc",
        ),
        (
            "a file in a folder that can be written",
            |fixture| replace(fixture, "home/project/.env"),
            "home/project/.env",
        ),
    ];
    for (what, change, path) in changes {
        let fixture = home();
        let mut probe = Probe::start(&host_read(&fixture));
        for hidden in ["home/.netrc", "home/project/.env"] {
            assert_eq!(probe.send_command(&format!("read {}", fixture.path(hidden))), "err EACCES", "{what}");
        }
        change(&fixture);
        assert_eq!(probe.control.request(ControlOp::Check).unwrap(), ControlAnswer::Checked);
        assert_eq!(probe.send_command(&format!("read {}", fixture.path(path))), "err EACCES", "{what}");
        assert_eq!(
            probe.send_command(&format!("read {}", fixture.path("home/plain"))),
            "ok home/plain",
            "{what}"
        );
        let events = events(&mut probe);
        assert!(
            matches!(events.as_slice(), [SandboxEvent::Uncovered { hidden: true, .. }]),
            "{what}: {events:?}"
        );
    }
}

#[test]
fn replaced_ordinary_file_is_visible() {
    let fixture = home();
    let mut probe = Probe::start(&host_read(&fixture));
    fixture.file("other");
    for name in ["home/plain", "home/project/plain"] {
        rename(&fixture, "other", name);
        assert_eq!(probe.send_command(&format!("read {}", fixture.path(name))), "ok other");
        fixture.file("other");
    }
    // Files that were written in place, or that are in a closed folder, are still read-only.
    fs::write(fixture.path("home/project/.vscode/tasks.json"), "new").unwrap();
    replace(&fixture, "home/project/.vscode/tasks.json");
    fs::write(fixture.path("home/project/.envrc"), "new").unwrap();
    assert_eq!(
        probe.send_command(&format!("open-write {}", fixture.path("home/project/.envrc"))),
        "err EROFS"
    );
    let tasks = fixture.path("home/project/.vscode/tasks.json");
    assert_eq!(probe.send_command(&format!("read {tasks}")), "ok new home/project/.vscode/tasks.json");
    assert_eq!(probe.send_command(&format!("open-write {tasks}")), "err EROFS");
    assert_eq!(events(&mut probe), []);
}

#[test]
fn closed_files_move_with_a_renamed_folder() {
    let fixture = repository();
    let mut probe = fixture.probe();
    grant(&mut probe, &fixture);
    assert_eq!(
        probe.send_command(&format!("rename {} {}", fixture.path("repo/a"), fixture.path("repo/z"))),
        "ok"
    );
    let moved = fixture.path("repo/z/b/.envrc");
    assert_eq!(probe.send_command(&format!("open-write {moved}")), "err EROFS");
    assert_eq!(probe.send_command(&format!("mkdir {}", fixture.path("repo/a"))), "ok");
    // Granting and revoking an inner folder does not remove any mask.
    let inner =
        Mount::new(fixture.path("repo/z/b"), MountAccess::ReadWrite).with_read_only(vec![moved.clone()]);
    assert_eq!(probe.try_add_mount(inner), Ok(()));
    assert_eq!(probe.send_command(&format!("open-write {moved}")), "err EROFS");
    probe.remove(&fixture.path("repo/z/b"));
    assert_eq!(probe.send_command(&format!("open-write {moved}")), "err EROFS");
    assert_eq!(events(&mut probe), []);
    replace(&fixture, "repo/z/b/.envrc");
    eventually("closed again", || probe.send_command(&format!("open-write {moved}")) == "err EROFS");
    assert_eq!(events(&mut probe), [SandboxEvent::Uncovered { path: moved, hidden: false }]);
}

/// Creates a repository with files that start programs, at several depths.
fn repository() -> Fixture {
    let fixture = Fixture::new();
    for name in [
        "repo/.git/config",
        "repo/.git/hooks/pre-commit",
        "repo/.envrc",
        "repo/a/b/.envrc",
        "repo/other",
        "hooks/x",
    ] {
        fixture.file(name);
    }
    fixture
}

fn grant(probe: &mut Probe, fixture: &Fixture) {
    let closed = CLOSED.iter().map(|name| fixture.path(name)).collect();
    assert_eq!(
        probe.try_add_mount(Mount::new(fixture.path("repo"), MountAccess::ReadWrite).with_read_only(closed)),
        Ok(())
    );
}

/// Creates a home directory with credentials and a writable folder.
fn home() -> Fixture {
    let fixture = Fixture::new();
    for name in ["home/.netrc", "home/.ssh/id", "home/.config/gcloud/token", "home/plain"] {
        fixture.file(name);
    }
    for name in [".env", "plain", ".envrc", ".vscode/tasks.json"] {
        fixture.file(&format!("home/project/{name}"));
    }
    fixture
}

fn host_read(fixture: &Fixture) -> Spec {
    let denied = [".netrc", ".ssh", ".config/gcloud", "project/.env"];
    let mut spec = fixture.probe_spec();
    spec.view = View::HostRead {
        session_dir: Some(fixture.path("session")),
        deny_read: denied.iter().map(|name| fixture.path(&format!("home/{name}"))).collect(),
        allow_read: vec![],
        allow_write: vec![fixture.path("home/project")],
        deny_write: vec![],
        private_tmp: true,
    };
    spec.view.show_program(&probe());
    spec.read_only = [".envrc", ".vscode"].map(|name| fixture.path(&format!("home/project/{name}"))).into();
    spec
}

/// Replaces a file by renaming a different file over it, like git, npm and most editors.
fn replace(fixture: &Fixture, name: &str) {
    let beside = format!("{name}.lock");
    fs::write(fixture.path(&beside), format!("new {name}")).unwrap();
    rename(fixture, &beside, name);
}

fn rename(fixture: &Fixture, from: &str, to: &str) {
    fs::rename(fixture.path(from), fixture.path(to)).unwrap();
}

fn exchange(fixture: &Fixture, one: &str, other: &str) {
    renameat_with(CWD, fixture.path(one), CWD, fixture.path(other), RenameFlags::EXCHANGE).unwrap();
}

/// Terminates the sandbox and returns its events since the start.
fn events(probe: &mut Probe) -> Vec<SandboxEvent> {
    let answer = probe.control.request(ControlOp::List).unwrap();
    assert!(matches!(answer, ControlAnswer::Mounts { .. }), "{answer:?}");
    let events = probe.control.queued_events().into_iter();
    events.filter(|event| !matches!(event, SandboxEvent::Limited { .. })).collect()
}

fn names(fixture: &Fixture, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(fixture.path(dir)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
