//! `ironcurtain run`: a program uses the user's files and waits while the user is asked.

use crate::machine::are_shells_stopped;
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A shell in a run.
pub struct Shell {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Lines printed by the shell.
    lines: Receiver<String>,
}

impl Shell {
    pub fn start(world: &World, folder: &Path) -> Self {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["run", "--", "/bin/sh"]).current_dir(folder);
        Self::of(command.env("IRONCURTAIN_HOME", world.ours()).env_remove("SSH_AUTH_SOCK"))
    }

    /// Starts a command that runs a shell.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let read = BufReader::new(stdout).lines().map_while(Result::ok);
            // Sending fails once the test has ended.
            read.map(|text| line.send(text)).take_while(Result::is_ok).count()
        });
        Self { child, stdin, lines }
    }

    /// Runs a command in the shell. Returns its output, followed by a line with the exit status.
    pub fn run(&mut self, command: &str) -> String {
        writeln!(self.stdin.as_ref().unwrap(), "{{ {command}; }} 2>&1; echo \"status $?\"").unwrap();
        let mut said = String::new();
        while !said.lines().last().is_some_and(|line| line.contains("status ")) {
            let line = self.lines.recv_timeout(TIMEOUT).unwrap_or_else(|why| {
                let ended = self.child.try_wait();
                panic!("{command}: {why}: {said} (the run's exit status: {ended:?})")
            });
            said.push_str(&line);
            said.push('\n');
        }
        said
    }

    /// Closes the shell's input. Returns the exit status.
    pub fn exit(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_file_is_asked_about_granted_listed_and_revoked() {
    let world = World::new();
    world.file("notes.txt", "my notes\n");
    world.file("project/own", "own\n");
    let mut shell = Shell::start(&world, &world.path("project"));
    // The run has full access to its working directory.
    assert_eq!(shell.run("cat own; echo made > made; ls"), "own\nmade\nown\nstatus 0\n");
    assert_eq!(std::fs::read_to_string(world.path("project/made")).unwrap(), "made\n");
    // Listing files and reading metadata need no approval.
    assert_eq!(shell.run("ls ~ && [ -f ~/notes.txt ]"), "docs\nnotes.txt\nproject\nstatus 0\n");
    assert_eq!(world.user.count(), 0);
    // The blocked system call succeeds after one answer, and the grant covers later calls.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    assert_eq!(shell.run("cat ~/notes.txt"), "my notes\nstatus 0\n");
    assert_eq!(shell.run("cat ~/notes.txt"), "my notes\nstatus 0\n");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(paths(&asked[0]), [world.path("notes.txt").to_str().unwrap()]);
    assert_eq!((asked[0].client.name.as_str(), asked[0].server.as_str()), ("sh", "run:sh"));
    let grants = world.grants();
    assert_eq!(grants.len(), 1);
    assert_eq!(
        (grants[0].server.as_str(), grants[0].access.as_slice()),
        ("run:sh", &["read".to_owned()][..])
    );
    // An open descriptor loses access too.
    assert_eq!(shell.run("exec 7< ~/notes.txt"), "status 0\n");
    world.revoke_only_grant();
    let held = shell.run("cat <&7");
    assert!(held.contains("Input/output error"), "{held}");
    let revoked = shell.run("cat ~/notes.txt");
    assert!(revoked.contains("Permission denied") && revoked.ends_with("status 1\n"), "{revoked}");
    assert_eq!(world.user.asked().len(), 1);
    // The denial lasts for the rest of the run.
    let denied = shell.run("cat ~/notes.txt");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!((world.user.asked().len(), world.questions().denied.len()), (0, 1));
    writeln!(shell.stdin.as_ref().unwrap(), "exit 7").unwrap();
    assert_eq!(shell.exit(), Some(7));
}

#[test]
fn a_folder_grant_covers_its_contents() {
    let world = World::new();
    for name in ["a", "b", "sub/c"] {
        world.file(&format!("docs/{name}"), name);
    }
    world.file("project/own", "own");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(shell.run("cd ~/docs && cat a"), "astatus 0\n");
    assert_eq!(shell.run("cat b sub/c"), "bsub/cstatus 0\n");
    assert_eq!(world.user.asked().len(), 1);
    // A read grant does not allow writing.
    let denied = shell.run("echo x > a");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(std::fs::read_to_string(world.path("docs/a")).unwrap(), "a");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(shell.run("echo new > b && cat b"), "new\nstatus 0\n");
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(shell.exit(), Some(0));
    eventually("the run and its grants are gone", TIMEOUT, || {
        world.sessions().is_empty() && world.grants().is_empty()
    });
}

#[test]
fn protected_files_and_ironcurtain_files_are_hidden_in_a_run() {
    let world = World::new();
    world.file(".ssh/id_ed25519", "key");
    world.file("project/own", "own");
    let mut shell = Shell::start(&world, &world.path("project"));
    let ours = world.ours();
    for path in [world.path(".ssh/id_ed25519"), ours.join("state"), ours.join("run/socket")] {
        let said = shell.run(&format!("cat {}", path.display()));
        assert!(said.contains("No such file or directory"), "{said}");
    }
    assert_eq!(shell.run("ls -A ~"), "docs\nproject\nstatus 0\n");
    let created = shell.run("echo x > ~/.ssh");
    assert!(created.contains("Permission denied"), "{created}");
    assert_eq!(world.user.count(), 0);
    // Any other file in the home directory raises a question.
    world.file("other", "other");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(shell.run("cat ~/other"), "otherstatus 0\n");
}

#[test]
fn a_run_is_listed_paused_and_ended() {
    let world = World::new();
    world.file("notes.txt", "notes");
    world.file("project/own", "own");
    let mut shell = Shell::start(&world, &world.path("project"));
    assert_eq!(shell.run("true"), "status 0\n");
    // The program starts shortly before its run is listed.
    eventually("the run is listed", TIMEOUT, || world.sessions().len() == 1);
    let sessions = world.sessions();
    assert_eq!((sessions[0].server.as_str(), sessions[0].sandboxed), ("run:sh", true));
    assert_eq!(world.request(Request::Pause { session: sessions[0].id.clone() }), Reply::Done);
    // Pausing stops every program, even one that uses only files that need no approval.
    let is_stopped = || are_shells_stopped(sessions[0].server_pid.unwrap());
    eventually("the shell is stopped", TIMEOUT, is_stopped);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    writeln!(shell.stdin.as_ref().unwrap(), "cat own").unwrap();
    assert!(is_stopped());
    assert_eq!(world.user.count(), 0);
    assert_eq!(world.request(Request::Resume { session: sessions[0].id.clone() }), Reply::Done);
    assert_eq!(shell.run("cat ~/notes.txt"), "ownnotesstatus 0\n");
    // A paused run can be ended.
    assert_eq!(world.request(Request::Pause { session: sessions[0].id.clone() }), Reply::Done);
    eventually("the shell is stopped again", TIMEOUT, is_stopped);
    assert_eq!(world.request(Request::EndSession { session: sessions[0].id.clone() }), Reply::Done);
    assert_eq!(shell.child.wait().unwrap().code(), Some(137));
    eventually("the run is gone", TIMEOUT, || world.sessions().is_empty());
}

#[test]
fn a_run_started_in_the_home_directory_gets_no_access_to_it() {
    let world = World::new();
    world.file("notes.txt", "notes");
    let mut shell = Shell::start(&world, &world.path(""));
    let denied = shell.run("cat notes.txt");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn redirected_files_are_copied_and_never_opened_inside() {
    let world = World::new();
    let list = world.file("list.txt", "one\ntwo\n");
    world.file("project/own", "own");
    let output = world.path("output.txt");
    let ran = |stdin: &Path| {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["run", "--", "/bin/sh", "-c", "cat; readlink /proc/self/fd/0 /proc/self/fd/1 >&2"]);
        command.current_dir(world.path("project")).env("IRONCURTAIN_HOME", world.ours());
        command.stdin(std::fs::File::open(stdin).unwrap());
        command.stdout(std::fs::File::create(&output).unwrap());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let child = child.wait_with_output().unwrap();
        (child.status.code(), String::from_utf8_lossy(&child.stderr).into_owned())
    };
    let (code, said) = ran(&list);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("pipe:")).count(), 2, "{said}");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "one\ntwo\n");
    // A descriptor for the folder would give access to everything in it.
    let (code, said) = ran(&world.path("docs"));
    assert!(code != Some(0) && said.contains("folder"), "{code:?} {said}");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "");
}
