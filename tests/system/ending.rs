//! However the trusted process ends: what its servers left that would run later is moved away, and that is on record.

use crate::client::{BOUND, Client};
use crate::hostile;
use crate::machine::{Machine, descendants, pid};
use crate::world::eventually;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// A machine with a session whose server has made a start-up file, and another file, in a granted folder.
fn left_behind() -> (Machine, Client, [PathBuf; 2]) {
    let mut machine = Machine::new(hostile::install);
    let report = machine.file("docs/below/report.txt", "text");
    machine.start();
    let mut client = machine.connect();
    let call = client.begin_call("change", json!({ "path": report }));
    machine.wait_until_said("Your answer: ");
    // The folder, for this session.
    machine.types("6");
    client.outcome(call).ok();
    let left = [".envrc", "plain"].map(|name| report.with_file_name("deep").join(name));
    std::fs::create_dir(left[0].parent().unwrap()).unwrap();
    for path in &left {
        client.scribble(path).ok();
    }
    (machine, client, left)
}

/// What the record says of a path.
fn told(machine: &Machine, path: &std::path::Path) -> Vec<String> {
    said(machine, &["boundary-violation", &format!("`{}`", path.to_str().unwrap())])
}

/// The lines of the record that have all of these words.
fn said(machine: &Machine, words: &[&str]) -> Vec<String> {
    let log = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let lines = log.lines().filter(|line| words.iter().all(|word| line.contains(word)));
    lines.map(str::to_owned).collect()
}

/// The start-up file is gone and on record, the other one is as it was.
#[track_caller]
fn is_in_order(machine: &Machine, [startup, plain]: &[PathBuf; 2]) {
    assert!(!startup.exists() && plain.exists());
    let told = told(machine, startup);
    assert_eq!(told.len(), 1, "{told:?}");
    let place = machine.home.sandboxes().join("quarantine");
    assert!(told[0].contains(&format!("was moved to `{}/", place.to_str().unwrap())), "{told:?}");
}

#[test]
fn a_signal_to_the_trusted_process_leaves_nothing_that_runs_later() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut machine, client, left) = left_behind();
        kill_process(pid(machine.pid()), signal).unwrap();
        assert!(machine.wait().success());
        is_in_order(&machine, &left);
        drop(client);
    }
}

#[test]
fn a_signal_to_everything_at_once_leaves_nothing_that_runs_later() {
    // As when the person logs out. The supervisors hear it first.
    let (mut machine, client, left) = left_behind();
    let all = descendants(machine.pid());
    assert!(all.len() > 1, "{all:?}");
    for process in &all {
        // Ended by the one before it, it needs no signal.
        let _ = kill_process(pid(process.pid), Signal::TERM);
    }
    kill_process(pid(machine.pid()), Signal::TERM).unwrap();
    assert!(machine.wait().success());
    is_in_order(&machine, &left);
    machine.is_clean(&all);
    drop(client);
}

#[test]
fn stopping_the_trusted_process_leaves_nothing_that_runs_later() {
    let (mut machine, client, left) = left_behind();
    assert!(machine.command(&["stop"]).status.success());
    // It returns when all is done and another one can start, not before.
    is_in_order(&machine, &left);
    let log = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    assert!(log.lines().last().unwrap().contains("the trusted process ended"), "{log}");
    assert!(machine.wait().success());
    drop(client);
}

#[test]
fn what_is_found_after_the_trusted_process_was_killed_is_on_record_when_it_runs_again() {
    let (mut machine, client, left) = left_behind();
    machine.kill();
    eventually("the start-up file is moved away", BOUND, || !left[0].exists());
    assert_eq!(told(&machine, &left[0]), Vec::<String>::new());
    machine.start();
    eventually("its mention", BOUND, || !told(&machine, &left[0]).is_empty());
    is_in_order(&machine, &left);
    // It is told once.
    kill_process(pid(machine.pid()), Signal::TERM).unwrap();
    machine.wait();
    machine.start();
    is_in_order(&machine, &left);
    machine.verify();
    drop(client);
}

/// The record says, once, that the granted folder was not searched.
#[track_caller]
fn names_what_was_not_searched(machine: &Machine, left: &[PathBuf; 2]) {
    let folder = left[0].ancestors().nth(2).unwrap();
    let told = said(machine, &["before everything was searched"]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&format!("`{}`", folder.to_str().unwrap())), "{told:?}");
}

#[test]
fn killed_while_an_answer_takes_effect_it_leaves_nothing_that_runs_later() {
    for millis in [2, 3, 4, 5, 6, 7, 8, 10, 12, 15] {
        let (mut machine, mut client, left) = left_behind();
        assert!(left.iter().all(|path| path.exists()), "nothing was planted");
        let other = machine.file("elsewhere/other.txt", "text");
        client.begin_call("open", json!({ "path": other }));
        machine.wait_until_said("Your answer: ");
        machine.types("1");
        // The instant that is tried: the path is judged again, put on record, and mounted.
        std::thread::sleep(Duration::from_millis(millis));
        let below = machine.kill();
        machine.is_clean(&below);
        machine.start();
        eventually("nothing is kept", BOUND, || kept(&machine) == 0);
        is_in_order(&machine, &left);
        machine.verify();
        drop(client);
    }
}

#[test]
fn killed_while_a_sandbox_tells_what_it_found_it_is_told_once() {
    let mut at_the_next_start = 0;
    for millis in [1, 2, 4, 6, 8, 10, 12, 15, 20, 30] {
        let (mut machine, client, left) = left_behind();
        assert!(left.iter().all(|path| path.exists()), "nothing was planted");
        client.hang_up();
        // The instant that is tried: the sandbox ends, is searched, and that is told.
        std::thread::sleep(Duration::from_millis(millis));
        let below = machine.kill();
        machine.is_clean(&below);
        at_the_next_start += usize::from(told(&machine, &left[0]).is_empty());
        machine.start();
        // What is kept of it goes when it is on record.
        eventually("nothing is kept", BOUND, || kept(&machine) == 0);
        is_in_order(&machine, &left);
        machine.verify();
    }
    assert!(at_the_next_start > 0, "it was told before each of the kills");
}

/// How much sandboxes have kept for who runs next.
fn kept(machine: &Machine) -> usize {
    std::fs::read_dir(machine.home.sandboxes().join("untold")).unwrap().count()
}

#[test]
fn what_a_killed_supervisor_did_not_search_is_named() {
    for kills_both in [false, true] {
        let (mut machine, client, left) = left_behind();
        let all = descendants(machine.pid());
        let supervisor = all.iter().find(|p| p.exe().ends_with("ironcurtain-sandbox")).unwrap();
        if kills_both {
            // In one go: nobody is there to be told.
            kill_process(pid(machine.pid()), Signal::STOP).unwrap();
        }
        supervisor.kill();
        if kills_both {
            machine.kill();
            machine.start();
        }
        eventually("its mention", BOUND, || !said(&machine, &["before everything was searched"]).is_empty());
        names_what_was_not_searched(&machine, &left);
        eventually("nothing is kept", BOUND, || kept(&machine) == 0);
        drop(client);
    }
}
