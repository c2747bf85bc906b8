//! Runs that are stopped, continued, signalled or left alone by the user's terminal.

use super::{Desk, run};
use crate::client::TIMEOUT;
use crate::machine::{is_stopped, pid, running_below};
use crate::terminal::{open, program_side};
use crate::world::{eventually, programs};
use rustix::process::{Signal, kill_process};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_program_that_is_killed_while_stopped_ends_the_run() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    desk.terminal.types("\"$RUN\" run --quiet -- cat\n");
    desk.terminal.becomes_raw();
    desk.terminal.types("typed\n");
    desk.terminal.shows("typed\r\ntyped\r\n");
    desk.stop();
    let cat = desk.inside("/bin/cat");
    assert_eq!(cat.len(), 1);
    kill_process(pid(cat[0].pid), Signal::KILL).unwrap();
    eventually("the program is gone", TIMEOUT, || desk.inside("/bin/cat").is_empty());
    desk.terminal.types("fg; echo \"status $?\"\n");
    desk.terminal.shows("status 137\r\n");
    desk.terminal.shows("$ ");
    desk.terminal.types("exit\n");
    shell.wait();
}

#[test]
fn ctrl_c_ends_a_run_that_was_in_the_background() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    desk.terminal.types("\"$RUN\" run --quiet -- sleep 1000\n");
    desk.terminal.becomes_raw();
    desk.stop();
    let sleep = desk.inside("/bin/sleep");
    assert!(sleep.len() == 1 && is_stopped(sleep[0].pid));
    desk.terminal.types("bg\n");
    eventually("the program runs in the background", TIMEOUT, || !is_stopped(sleep[0].pid));
    desk.terminal.shows("$ ");
    desk.terminal.types("fg\n");
    desk.terminal.becomes_raw();
    // The terminal is raw shortly before the program is in the foreground.
    eventually("Ctrl-C ends the run", TIMEOUT, || {
        desk.terminal.types("\x03");
        desk.terminal.rest().contains("$ ")
    });
    // The shell may lose input that follows a late Ctrl-C.
    eventually("the shell exits", TIMEOUT, || {
        desk.terminal.types("exit\n");
        shell.status().is_some()
    });
}

#[test]
fn a_signal_ends_a_run_that_waits_for_input_in_the_background() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    desk.terminal.types("\"$RUN\" run --quiet -- cat &\n");
    eventually("the run stops", TIMEOUT, || {
        desk.terminal.types("jobs\n");
        desk.terminal.rest().contains("Stopped")
    });
    desk.terminal.types("kill %1\n");
    eventually("the run ends", TIMEOUT, || {
        desk.terminal.types("jobs\n");
        desk.terminal.rest().contains("Exit 143")
    });
    desk.terminal.types("exit\n");
    shell.wait();
}

#[test]
fn a_program_can_finish_after_its_terminal_was_closed() {
    let desk = Desk::new();
    let terminal = open();
    let script =
        "trap 'sleep 0.5; echo finished > end; exit 4' HUP; echo ready; while :; do sleep 0.05; done";
    let run = run(&desk.world.ours(), &desk.world.path("project"), &["--quiet"], &["sh", "-c", script]);
    // A terminal emulator starts its program as the leader of the terminal's session.
    let mut leader = Command::new("setsid");
    leader.arg("--ctty").arg(run.get_program()).args(run.get_args());
    leader.current_dir(run.get_current_dir().unwrap());
    leader.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let other = || program_side(&terminal);
    let mut leader = leader.stdin(other()).stdout(other()).stderr(other()).spawn().unwrap();
    let mut terminal = File::from(terminal);
    let mut shown = String::new();
    while !shown.contains("ready") {
        let mut piece = [0; 256];
        let count = terminal.read(&mut piece).unwrap();
        shown += &String::from_utf8_lossy(&piece[..count]);
    }
    drop(terminal);
    assert_eq!(leader.wait().unwrap().into_raw(), 4 << 8);
    assert_eq!(std::fs::read_to_string(desk.world.path("project").join("end")).unwrap(), "finished\n");
}

#[test]
fn a_program_that_keeps_writing_in_the_background_does_not_delay_the_end() {
    let desk = Desk::new();
    let run = desk.run(&["--quiet"], &["sh", "-c", "yes & exit 3"]);
    assert_eq!(run.wait(), 3);
}

#[test]
fn a_program_without_a_terminal_stops_only_itself() {
    let desk = Desk::new();
    let mut run = run(&desk.world.ours(), &desk.world.path("project"), &[], &["sh", "-c", "kill -STOP $$"]);
    let run = run.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    eventually("the program is stopped", TIMEOUT, || {
        let inside = desk.inside("/bin/sh");
        !inside.is_empty() && inside.iter().all(|one| is_stopped(one.pid))
    });
    kill_process(pid(run.id()), Signal::TERM).unwrap();
    eventually("the run ends", TIMEOUT, || run.try_wait().unwrap().is_some());
    assert_eq!(run.wait().unwrap().code(), Some(143));
}

#[test]
fn a_question_that_was_hidden_is_drawn_again_before_it_can_be_answered() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    desk.terminal.types("\"$RUN\" run --quiet --ask terminal -- sh -c 'cat ~/notes.txt & wait; read a'\n");
    desk.terminal.shows("Your answer: ");
    for sh in desk.inside("/bin/sh") {
        kill_process(pid(sh.pid), Signal::STOP).unwrap();
    }
    let hidden = desk.terminal.shows("Stopped");
    assert!(hidden.contains("\x1b[?1049l"), "{hidden:?}");
    desk.terminal.shows("$ ");
    // Input typed before the question was visible for a moment does not answer it.
    desk.terminal.types("fg\n2\n");
    let question = desk.terminal.shows("Your answer: ");
    assert!(question.contains("\x1b[?1049h") && question.contains("notes.txt"), "{question:?}");
    desk.terminal.types("2\n");
    // The same applies if IronCurtain was stopped without notice.
    let relay = running_below(shell.pid(), programs().join("ironcurtain").to_str().unwrap());
    kill_process(pid(relay[0].pid), Signal::STOP).unwrap();
    desk.terminal.shows("Stopped");
    desk.terminal.shows("$ ");
    desk.terminal.types("fg\n2\n");
    let question = desk.terminal.shows("Your answer: ");
    assert!(question.contains("notes.txt"), "{question:?}");
    desk.terminal.types("2\n");
    assert_eq!(desk.world.status().questions, 1);
    let mut typed = Instant::now();
    eventually("the answer counts", TIMEOUT, || {
        if typed.elapsed() > Duration::from_secs(1) {
            desk.terminal.types("2\n");
            typed = Instant::now();
        }
        desk.terminal.rest().contains("my notes\r\n")
    });
    desk.terminal.shows("my notes\r\n");
    desk.terminal.types("\n");
    desk.terminal.shows("$ ");
    desk.terminal.types("exit\n");
    shell.wait();
}
