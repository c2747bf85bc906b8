//! Programs of a paused run that continue.

use crate::machine::{descendants, is_stopped, pid};
use crate::world::{World, eventually, programs};
use ironcurtain_protocol::{Reply, Request};
use rustix::process::{Signal, kill_process};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_program_that_continues_while_paused_is_suspended_again_and_finally_ends_the_run() {
    let world = World::new();
    world.file("project/own", "own");
    let mut run = Command::new(programs().join("ironcurtain"))
        .args(["run", "--", "/bin/sleep", "1000"])
        .current_dir(world.path("project"))
        .env("IRONCURTAIN_HOME", world.ours())
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the run is listed", TIMEOUT, || world.sessions().len() == 1);
    let (session, supervisor) = {
        let run = &world.sessions()[0];
        (run.id.clone(), run.server_pid.unwrap())
    };
    let program = || descendants(supervisor).into_iter().find(|one| one.exe().ends_with("sleep"));
    eventually("the program runs", TIMEOUT, || program().is_some());
    let program = program().unwrap().pid;
    assert_eq!(world.request(Request::Pause { session }), Reply::Done);
    eventually("the program is suspended", TIMEOUT, || is_stopped(program));
    // The kernel can resume a program too, for example with a timer that the program has set.
    kill_process(pid(program), Signal::CONT).unwrap();
    eventually("the program is suspended again", TIMEOUT, || is_stopped(program));
    assert!(run.try_wait().unwrap().is_none());
    eventually("the run is over", TIMEOUT, || {
        // Fails once the program has exited.
        let _ = kill_process(pid(program), Signal::CONT);
        run.try_wait().unwrap().is_some()
    });
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(137));
    let said = String::from_utf8(ended.stderr).unwrap();
    let why = "ironcurtain: the run was cut off: a program kept resuming itself while it was paused\n";
    assert!(said.contains(why), "{said}");
}
