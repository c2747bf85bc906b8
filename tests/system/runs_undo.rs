//! `ironcurtain run --checkpoint` and `ironcurtain undo`.

use crate::client::TIMEOUT;
use crate::runs::Shell;
use crate::world::{World, eventually, programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::read_to_string;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

fn ironcurtain(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(arguments).current_dir(world.path("project")).env("IRONCURTAIN_HOME", world.ours());
    command.env("HOME", &world.home.user_home);
    command
}

fn command(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = ironcurtain(world, arguments).output().unwrap();
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn run(world: &World, script: &str) -> (Option<i32>, String) {
    command(world, &["run", "--checkpoint", "--verbose", "--", "/bin/sh", "-c", script])
}

fn checkpoints(world: &World) -> Vec<String> {
    let (status, said) = command(world, &["--json", "undo"]);
    assert_eq!(status, Some(0), "{said}");
    let listed: Value = serde_json::from_str(&said).unwrap();
    listed["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn changes_of_a_run_are_listed_and_undone() {
    let world = World::new();
    world.file("project/own", "own\n");
    world.file("project/.git/HEAD", "ref: refs/heads/main\n");
    let script = "echo changed > own; echo new > new; mkdir -p sub .git/objects; echo x | tee sub/x > .git/objects/x; echo y > .git/HEAD; exit 3";
    let (status, said) = run(&world, script);
    assert_eq!(status, Some(3));
    let checkpoints = checkpoints(&world);
    assert_eq!(checkpoints.len(), 1);
    let id = &checkpoints[0];
    assert!(said.ends_with(&format!("ironcurtain: ironcurtain undo {id} restores the folder\n")), "{said}");
    world.file("project/later", "by the user");
    // Without a terminal, nothing is restored.
    let (status, said) = command(&world, &["undo", id, "--diff"]);
    assert_eq!(status, Some(1), "{said}");
    for line in [
        "  created  new\n",
        "  changed  own\n",
        "  created  sub\n",
        "  created  sub/x\n",
        "add --later:\n  created  later\n",
        "(such as .git) differs in 1 path, and stays",
        "The run created 2 Git objects that stay, because later commits may need them.\n",
        "own:\n  | @@ -1 +1 @@\n  | -own\n  | +changed\n",
        "no terminal to confirm on",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(read_to_string(world.path("project/own")).unwrap(), "changed\n");
    let (status, said) = command(&world, &["undo", id, "--yes"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.ends_with("Restored 4 paths.\n"), "{said}");
    let log = world.log();
    let folder = world.path("project").display().to_string();
    for what in ["are to be restored: 4, by `", "were restored: 4, failed: 0, by `"] {
        let what = format!("paths of `{folder}` {what}");
        let is_recorded =
            |line: &&str| line.contains(&what) && line.contains(id) && line.contains("\"undo\"");
        assert_eq!(log.lines().filter(is_recorded).count(), 1, "{what}: {log}");
    }
    assert_eq!(read_to_string(world.path("project/own")).unwrap(), "own\n");
    assert!(!world.path("project/new").exists() && !world.path("project/sub").exists());
    assert_eq!(read_to_string(world.path("project/later")).unwrap(), "by the user");
    assert_eq!(read_to_string(world.path("project/.git/HEAD")).unwrap(), "y\n");
    let (_, said) = command(&world, &["undo", id, "--yes", "--git"]);
    assert!(said.ends_with("Restored 1 path.\n"), "{said}");
    assert_eq!(read_to_string(world.path("project/.git/HEAD")).unwrap(), "ref: refs/heads/main\n");
    assert_eq!(read_to_string(world.path("project/.git/objects/x")).unwrap(), "x\n");
    assert_eq!(command(&world, &["undo", id, "--forget"]).0, Some(0));
    let (status, said) = command(&world, &["undo", id]);
    assert!(status == Some(1) && said.contains("unknown checkpoint"), "{said}");
}

#[test]
fn paths_that_the_checkpoint_does_not_cover_are_named_before_and_after_the_run() {
    let world = World::new();
    world.file("project/own", "own\n");
    let _socket = UnixListener::bind(world.path("project/socket")).unwrap();
    let (status, said) = run(&world, "echo started");
    assert_eq!(status, Some(0), "{said}");
    let why = "ironcurtain: the checkpoint does not cover 1 path, such as socket: it is a pipe, a socket or a device\n";
    assert!(said.contains(why), "{said}");
    assert!(
        said.ends_with(" restores the folder, except 1 path that the checkpoint does not cover\n"),
        "{said}"
    );
}

#[test]
fn the_checkpoint_of_an_active_run_is_not_undone_or_forgotten() {
    let world = World::new();
    world.file("project/own", "own\n");
    let mut shell = Shell::of(&mut ironcurtain(&world, &["run", "--checkpoint", "--", "/bin/sh"]));
    assert_eq!(shell.run("echo changed > own"), "status 0\n");
    // The checkpoint gets the run's id once the starting process knows that id. The program may already be running
    // then.
    eventually("the checkpoint is listed", TIMEOUT, || !checkpoints(&world).is_empty());
    let id = checkpoints(&world).remove(0);
    for arguments in [["undo", &id, "--forget"], ["undo", &id, "--yes"]] {
        let (status, said) = command(&world, &arguments);
        assert!(status == Some(1) && said.contains("is still active; end it first"), "{said}");
    }
    assert_eq!(shell.exit(), Some(0));
    assert_eq!(command(&world, &["undo", &id, "--yes"]).0, Some(0));
    assert_eq!(read_to_string(world.path("project/own")).unwrap(), "own\n");
    assert_eq!(command(&world, &["undo", &id, "--forget"]).0, Some(0));
    assert_eq!(checkpoints(&world), [""; 0]);
}

#[test]
fn ctrl_c_does_not_interrupt_restoring() {
    let world = World::new();
    world.file("project/own", "own\n");
    assert_eq!(run(&world, "i=0; while [ $i -lt 10000 ]; do : > new-$i; i=$((i+1)); done").0, Some(0));
    let id = checkpoints(&world).remove(0);
    let mut undo = ironcurtain(&world, &["undo", &id, "--yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", undo.id()));
    let is_restoring = || {
        let status = read_to_string(&status).unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim();
        u64::from_str_radix(blocked, 16).unwrap() >> (Signal::INT.as_raw() - 1) & 1 == 1
    };
    // Polls without pauses, because the restore takes only a fraction of a second.
    let began = Instant::now();
    while !is_restoring() {
        assert!(began.elapsed() < TIMEOUT, "the signal is not blocked");
    }
    let process = Pid::from_child(&undo);
    kill_process(process, Signal::STOP).unwrap();
    assert!(std::fs::read_dir(world.path("project")).unwrap().count() > 1, "the restore was too fast");
    for signal in [Signal::INT, Signal::TERM, Signal::CONT] {
        kill_process(process, signal).unwrap();
    }
    let mut said = String::new();
    undo.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(undo.wait().unwrap().success() && said.ends_with("Restored 10000 paths.\n"), "{said}");
    assert_eq!(std::fs::read_dir(world.path("project")).unwrap().count(), 1);
}

#[test]
fn a_run_that_is_active_in_the_folder_is_named() {
    let world = World::new();
    world.file("project/own", "own\n");
    assert_eq!(run(&world, "echo changed > own").0, Some(0));
    let id = checkpoints(&world).remove(0);
    let is_named = |said: &str| {
        said.contains(" of run:sh uses this folder too. Restoring also undoes what it changed before")
    };
    let (_, said) = command(&world, &["undo", &id]);
    assert!(!is_named(&said), "{said}");
    let mut shell = Shell::of(&mut ironcurtain(&world, &["run", "--", "/bin/sh"]));
    assert_eq!(shell.run("echo other > other"), "status 0\n");
    let (status, said) = command(&world, &["undo", &id, "--yes"]);
    assert!(status == Some(0) && is_named(&said), "{said}");
    assert_eq!(read_to_string(world.path("project/own")).unwrap(), "own\n");
    assert_eq!(read_to_string(world.path("project/other")).unwrap(), "other\n");
    assert_eq!(shell.exit(), Some(0));
}

#[test]
fn a_run_cannot_use_its_checkpoint_to_reach_others() {
    let world = World::new();
    world.file("project/sub/own", "own\n");
    let target = world.file("docs/own", "the user's\n");
    let link = format!("rm -r sub; ln -s {} sub", target.parent().unwrap().display());
    assert_eq!(run(&world, &link).0, Some(0));
    let checkpoints = checkpoints(&world);
    let (status, said) = command(&world, &["undo", &checkpoints[0], "--yes"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(read_to_string(&target).unwrap(), "the user's\n");
    assert_eq!(read_to_string(world.path("project/sub/own")).unwrap(), "own\n");
    // The copies are IronCurtain's own files, which no run can see.
    let copies = world.home.checkpoints();
    assert!(copies.is_dir());
    let (_, said) = run(&world, &format!("ls {}", copies.display()));
    assert!(said.contains("No such file or directory"), "{said}");
}

#[test]
fn a_folder_that_is_not_granted_has_no_checkpoint() {
    let world = World::new();
    world.file(".ssh/id", "key");
    world.file("project/own", "own");
    let mut home = Command::new(programs().join("ironcurtain"));
    home.args(["run", "--checkpoint", "--", "true"]).current_dir(&world.home.user_home);
    let refused =
        home.env("IRONCURTAIN_HOME", world.ours()).env("HOME", &world.home.user_home).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("a run in this folder has none"), "{said}");
    // A run that fails to start creates no checkpoint either.
    let (status, _) = command(&world, &["run", "--checkpoint", "--", "/nonexistent"]);
    assert_ne!(status, Some(0));
    assert_eq!(checkpoints(&world), [""; 0]);
}
