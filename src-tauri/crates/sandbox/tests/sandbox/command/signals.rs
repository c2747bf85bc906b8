//! Tests signals, and the cleanup after each way in which a command can exit.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Child,
    thread,
    time::Duration,
};

use ironcurtain_sandbox::PROXY_PROGRAM;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{CommandFixture, feed};
use crate::harness::{eventually, processes_with};

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the first line of output.
fn first_line(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    output
}

#[test]
fn signal_reaches_the_command_and_its_children() {
    let desk = CommandFixture::new();
    for (sent, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1), (Signal::USR1, 10)] {
        let marker = marker(&desk, number);
        // A shell that is about to start a program can miss a signal, so the last program that the test waits for
        // starts no other program.
        let mut child = desk.start(&format!("echo up; (exec -a {marker} sleep 1000); echo after"));
        let mut output = first_line(&mut child);
        eventually("the sleeper", || processes_with(&marker).iter().any(|(_, name)| name == "sleep"));
        signal(&child, sent);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
        let mut rest = String::new();
        output.read_line(&mut rest).unwrap();
        assert_eq!(rest, "");
        eventually("all gone", || processes_with(&marker).is_empty());
    }
}

#[test]
fn command_may_handle_a_signal() {
    let desk = CommandFixture::new();
    let mut child = desk.start("trap 'exit 5' TERM; echo up; sleep 1000 & wait; exit 6");
    let _said = first_line(&mut child);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let mut child = desk.start("trap '' TERM; echo up; read line; exit 6");
    let _said = first_line(&mut child);
    signal(&child, Signal::TERM);
    assert_eq!(feed(child, "go\n").status, Some(6));
}

#[test]
fn signal_at_any_time_leaves_nothing() {
    let desk = CommandFixture::new();
    for round in 0..40 {
        let marker = marker(&desk, round);
        let mut child = desk.start(&format!(": {marker}; read line"));
        // Keeps standard input open, because EOF would stop the command before the signal does.
        let input = child.stdin.take();
        thread::sleep(Duration::from_micros(500) * round.cast_unsigned());
        signal(&child, Signal::TERM);
        let outcome = child.wait_with_output().unwrap();
        drop(input);
        assert!(outcome.status.code() == Some(143) || outcome.status.code().is_none(), "{outcome:?}");
        eventually("all gone", || processes_with(&marker).is_empty());
    }
    // Nothing is created before signals are blocked, and everything is cleaned up afterwards.
    assert_eq!(fs::read_dir(desk.path("work")).unwrap().count(), 0);
}

#[test]
fn killing_the_supervisor_kills_everything() {
    let desk = CommandFixture::new().with("network/allowedDomains", json!(["example.test"]));
    for round in 0..20 {
        let marker = marker(&desk, round);
        let mut child = desk.start(&format!(": {marker}; sleep 1000 & sleep 1000"));
        let own = format!("{PROXY_PROGRAM}\0");
        thread::sleep(Duration::from_millis(2) * round.cast_unsigned());
        let proxies: Vec<u32> = below(child.id()).into_iter().filter(|pid| has(*pid, &own)).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("all gone", || processes_with(&marker).is_empty());
        eventually("the proxies have exited", || !proxies.iter().any(|pid| has(*pid, &own)));
    }
    assert_eq!(desk.stdout_of("echo done"), "done\n");
    assert_eq!(fs::read_dir(desk.path("work")).unwrap().count(), 0);
}

#[test]
fn concurrent_commands_in_one_directory_do_not_interfere() {
    let desk = CommandFixture::new();
    desk.stdout_of("true");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..15 {
                    let mut command = desk.command(&[]);
                    let output =
                        command.args(["-c", "echo x >.bashrc; ls -A | grep -vc bashrc"]).output().unwrap();
                    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0\n", "{:?}", output.stderr);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(desk.path("work")).unwrap().count(), 0);
}

fn below(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn has(pid: u32, marker: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(marker))
}

fn marker(desk: &CommandFixture, round: i32) -> String {
    format!("marker-{}-{round}-", desk.fixture.dir.path().file_name().unwrap().to_str().unwrap())
}
