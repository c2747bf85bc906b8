//! Tests that the user's named pipes and sockets are masked in folders that a sandbox shows.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::{fs::OpenOptionsExt, net::UnixListener},
};

use ironcurtain_sandbox::{
    ControlAnswer,
    MountAccess::{ReadOnly, ReadWrite},
    MountRefusal, View,
};
use ironcurtain_testkit::programs::is_root;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::harness::{Fixture, Probe, eventually};

/// Pipe with data that one of the user's programs holds open.
struct UserPipe {
    path: String,
    ends: File,
}

impl UserPipe {
    fn new(fixture: &Fixture, name: &str) -> Self {
        let path = fixture.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut open = OpenOptions::new();
        let ends =
            open.read(true).write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let mut ends = ends.open(&path).unwrap();
        ends.write_all(b"the user's").unwrap();
        Self { path, ends }
    }

    /// Reads the data currently in the pipe.
    fn content(&mut self) -> String {
        let mut bytes = [0; 256];
        let length = self.ends.read(&mut bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

/// Returns `true` if an answer shows that the file is masked. Root bypasses the mask's mode and reads an empty file.
fn masked(output: &str, reads: bool) -> bool {
    let as_root = if reads { "ok " } else { "err EROFS" };
    output == "err EACCES" || is_root() && output.trim_end() == as_root.trim_end()
}

#[test]
fn users_pipe_is_neither_written_nor_drained() {
    for access in [ReadOnly, ReadWrite] {
        let fixture = Fixture::new();
        let file = fixture.file("dir/deep/file");
        let mut pipe = UserPipe::new(&fixture, "dir/deep/pipe");
        // Tests a grant at launch, and a grant to a running sandbox.
        for at_start in [true, false] {
            let mut spec = fixture.probe_spec();
            if at_start {
                spec.mounts = vec![ironcurtain_sandbox::Mount::new(fixture.path("dir"), access)];
            }
            let mut probe = Probe::start(&spec);
            if !at_start {
                probe.add(&fixture.path("dir"), access);
            }
            let output = probe.send_command(&format!("pipe-write {} injected", pipe.path));
            assert!(masked(&output, false), "{output}");
            let output = probe.send_command(&format!("pipe-read {}", pipe.path));
            assert!(masked(&output, true), "{output}");
            assert_eq!(probe.send_command(&format!("read {file}")), "ok dir/deep/file");
            assert_eq!(pipe.content(), "the user's");
            pipe.ends.write_all(b"the user's").unwrap();
        }
    }
}

#[test]
fn new_pipe_is_masked() {
    let fixture = Fixture::new();
    let file = fixture.file("dir/file");
    fs::create_dir(fixture.path("dir/sub")).unwrap();
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    let mut probe = fixture.probe();
    probe.add(&fixture.path("dir"), ReadOnly);
    let mut is_masked = |path: &str| {
        eventually("the pipe is masked", || {
            masked(&probe.send_command(&format!("pipe-write {path} injected")), false)
        });
        assert!(masked(&probe.send_command(&format!("pipe-read {path}")), true));
    };
    is_masked(&UserPipe::new(&fixture, "dir/sub/made").path);
    let other = UserPipe::new(&fixture, "elsewhere/pipe");
    fs::hard_link(&other.path, fixture.path("dir/linked")).unwrap();
    is_masked(&fixture.path("dir/linked"));
    fs::create_dir(fixture.path("elsewhere/folder")).unwrap();
    fs::rename(&other.path, fixture.path("elsewhere/folder/pipe")).unwrap();
    fs::rename(fixture.path("elsewhere/folder"), fixture.path("dir/folder")).unwrap();
    is_masked(&fixture.path("dir/folder/pipe"));
    // Renames a pipe over another pipe, and then renames it again.
    fs::rename(UserPipe::new(&fixture, "elsewhere/new").path, fixture.path("dir/sub/made")).unwrap();
    is_masked(&fixture.path("dir/sub/made"));
    fs::rename(fixture.path("dir/sub/made"), fixture.path("dir/sub/renamed")).unwrap();
    is_masked(&fixture.path("dir/sub/renamed"));
    assert_eq!(probe.send_command(&format!("read {file}")), "ok dir/file");
    // A file that replaces a pipe is readable.
    fs::remove_file(fixture.path("dir/linked")).unwrap();
    fs::write(fixture.path("dir/linked"), "a file").unwrap();
    eventually("the file is shown", || {
        probe.send_command(&format!("read {}", fixture.path("dir/linked"))) == "ok a file"
    });
}

#[test]
fn mask_survives_access_changes_and_wider_grants() {
    let fixture = Fixture::new();
    fixture.file("dir/sub/file");
    let mut pipe = UserPipe::new(&fixture, "dir/sub/pipe");
    let mut probe = fixture.probe();
    let refused = |probe: &mut Probe| {
        let output = probe.send_command(&format!("pipe-write {} injected", fixture.path("dir/sub/pipe")));
        assert!(masked(&output, false), "{output}");
    };
    probe.add(&fixture.path("dir/sub"), ReadOnly);
    probe.add(&fixture.path("dir"), ReadWrite);
    refused(&mut probe);
    probe.narrow(&fixture.path("dir"));
    refused(&mut probe);
    let later = UserPipe::new(&fixture, "dir/sub/later");
    eventually("the pipe is masked", || {
        masked(&probe.send_command(&format!("pipe-write {} injected", later.path)), false)
    });
    probe.remove(&fixture.path("dir/sub"));
    refused(&mut probe);
    let output = probe.send_command(&format!("pipe-write {} injected", later.path));
    assert!(masked(&output, false), "{output}");
    assert_eq!(pipe.content(), "the user's");
}

#[test]
fn own_pipes_work() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    for path in [fixture.path("session/own"), "/tmp/own".into(), "/dev/shm/own".into()] {
        assert_eq!(probe.send_command(&format!("mkfifo {path}")), "ok", "{path}");
        assert_eq!(probe.send_command(&format!("pipe-read {path}")), "ok", "{path}");
    }
}

#[test]
fn program_folder_masks_pipes() {
    let fixture = Fixture::new();
    let file = fixture.file("program/file");
    let mut pipe = UserPipe::new(&fixture, "program/pipe");
    let mut spec = fixture.probe_spec();
    let View::Roots { programs, .. } = &mut spec.view else { panic!("another view") };
    programs.push(fixture.path("program"));
    let mut probe = Probe::start(&spec);
    let output = probe.send_command(&format!("pipe-write {} injected", pipe.path));
    assert!(masked(&output, false), "{output}");
    assert_eq!(probe.send_command(&format!("read {file}")), "ok program/file");
    assert_eq!(pipe.content(), "the user's");
}

#[test]
fn granting_a_pipe_or_socket_is_refused() {
    let fixture = Fixture::new();
    fixture.file("dir/file");
    let pipe = UserPipe::new(&fixture, "dir/pipe");
    let _socket = UnixListener::bind(fixture.path("dir/socket")).unwrap();
    let mut probe = fixture.probe();
    for (path, kind) in [(pipe.path, "a named pipe"), (fixture.path("dir/socket"), "a socket")] {
        let ControlAnswer::Refused { code, message } = probe.try_add(&path, ReadOnly) else {
            panic!("the path was mounted")
        };
        let expected = format!("`{path}` is {kind}; only regular files and folders can be granted");
        assert_eq!((code, message), (MountRefusal::Kind, expected));
    }
    probe.add(&fixture.path("dir/file"), ReadOnly);
}

#[test]
fn folder_with_too_many_pipes_is_refused_with_advice() {
    let fixture = Fixture::new();
    let dir = fixture.path("dir");
    fs::create_dir_all(fixture.path("dir/fine")).unwrap();
    for number in 0..=512 {
        let path = fixture.path(&format!("dir/{number}"));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    let mut probe = fixture.probe();
    let ControlAnswer::Refused { code, message } = probe.try_add(&dir, ReadOnly) else {
        panic!("the path was mounted")
    };
    let expected = format!(
        "`{dir}` has more than 512 named pipes and sockets, too many to mask; allow a smaller folder inside it"
    );
    assert_eq!((code, message), (MountRefusal::Special, expected));
    probe.add(&fixture.path("dir/fine"), ReadOnly);
}

#[test]
fn pipe_in_the_home_is_masked_in_the_host_read_view() {
    let fixture = Fixture::new();
    let file = fixture.file("home/file");
    let mut pipe = UserPipe::new(&fixture, "home/deep-pipe");
    let mut spec = fixture.probe_spec();
    // `HOME` names a different folder, which a server's entry can also do.
    spec.home = Some(fixture.path("home"));
    spec.view = View::HostRead {
        session_dir: Some(fixture.path("session")),
        deny_read: vec![],
        allow_read: vec![],
        allow_write: vec![],
        deny_write: vec![],
        private_tmp: false,
    };
    let mut probe = Probe::start(&spec);
    eventually("the pipe is masked", || {
        masked(&probe.send_command(&format!("pipe-read {}", pipe.path)), true)
    });
    pipe.content();
    assert!(masked(&probe.send_command(&format!("pipe-write {} injected", pipe.path)), false));
    assert_eq!(pipe.content(), "");
    assert_eq!(probe.send_command(&format!("read {file}")), "ok home/file");
    assert_eq!(probe.send_command(&format!("mkfifo {}", fixture.path("session/own"))), "ok");
}
