//! Programs of a paused run that continue.

use crate::machine::{are_shells_stopped, descendants, is_stopped, is_uninterruptible, pid};
use crate::run_terminal::run;
use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_program_that_continues_while_paused_is_suspended_again_and_finally_ends_the_run() {
    let world = World::new();
    world.file("project/own", "own");
    let mut run = run(&world.ours(), &world.path("project"), &[], &["/bin/sleep", "1000"])
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

#[test]
fn a_program_that_continues_while_paused_opens_no_further_files() {
    let world = World::new();
    world.file("project/own", "own");
    (0..3).for_each(|number| _ = world.file(&format!("docs/{number}"), &format!("{number}\n")));
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    // The second file needs no question, because the folder is readable.
    assert_eq!(shell.run("cat ~/docs/0 ~/docs/1"), "0\n1\nstatus 0\n");
    eventually("the run is listed", TIMEOUT, || world.sessions().len() == 1);
    let run = world.sessions().remove(0);
    let supervisor = run.server_pid.unwrap();
    assert_eq!(world.request(Request::Pause { session: run.id.clone() }), Reply::Done);
    eventually("the shell is suspended", TIMEOUT, || are_shells_stopped(supervisor));
    // Only the shell and its command are resumed. IronCurtain's own process in the sandbox would report that its program
    // is stopped, and `ironcurtain run` would then stop the test, as a shell's job.
    let [sh, cat] = ["/bin/sh", "/bin/cat"].map(|file| Path::new(file).canonicalize().unwrap());
    let programs = || descendants(supervisor).into_iter().filter(|one| [&sh, &cat].contains(&&one.exe()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the command waits for its file", TIMEOUT, || {
                // Fails for a program that has just exited.
                programs().for_each(|one| _ = kill_process(pid(one.pid), Signal::CONT));
                programs().any(|one| one.exe() == cat && is_uninterruptible(&one))
            });
            assert_eq!(world.request(Request::Resume { session: run.id.clone() }), Reply::Done);
        });
        assert_eq!(shell.run("cat ~/docs/2"), "2\nstatus 0\n");
    });
    let log = world.log();
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}: {log}"));
    assert!(at("the session was resumed") < at("docs/2"), "{log}");
    assert_eq!(world.user.asked().len(), 1);
}
