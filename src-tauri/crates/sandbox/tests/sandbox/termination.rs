//! Tests that nothing is left behind after a termination, regardless of its cause.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ironcurtain_sandbox::{ControlAnswer, ControlOp, SandboxEvent, SandboxExit, launch};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Fixture, Probe, TIMEOUT, eventually, launcher, probe, processes_with, supervisor};

/// Step between successive kill times. Together, they span the time from launch until all processes are running.
const STEP: Duration = Duration::from_micros(200);
const ROUNDS: u32 = 100;

#[test]
fn exit_status_is_passed_on() {
    let fixture = Fixture::new();
    for (ending, status) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + 15)] {
        let mut probe = Probe::start(&fixture.spec(&["sh", "-c", ending]));
        assert!(matches!(probe.control.event().unwrap(), SandboxEvent::Limited { .. }));
        assert_eq!(probe.control.event().unwrap(), SandboxEvent::Exited { status });
        assert_eq!(probe.wait(), SandboxExit { status: Some(status), signal: None });
    }
}

#[test]
fn shutdown_hang_up_and_kill_terminate_everything() {
    let fixture = Fixture::new();
    for (how, round) in ["shutdown", "hang up", "kill"].into_iter().zip(1..) {
        let marker = marker(&fixture, round);
        let mut probe = Probe::start(&fixture.spec(&[&probe(), &marker]));
        assert_eq!(probe.send_command("sleepers 3"), "ok");
        // The supervisor does not have the marker. Bubblewrap, its init, the probe and three sleepers inherit the
        // environment that contains it.
        assert!(processes_with(&marker).len() >= 3);
        match how {
            "shutdown" => {
                assert_eq!(probe.control.request(ControlOp::Shutdown).unwrap(), ControlAnswer::Closing)
            }
            "hang up" => drop(probe.control),
            _ => probe.kill.kill(),
        }
        let ended = probe.ended.recv_timeout(TIMEOUT).unwrap();
        let killed = SandboxExit { status: None, signal: Some(9) };
        let own_end = SandboxExit { status: Some(128 + 9), signal: None };
        assert_eq!(ended, if how == "kill" { killed } else { own_end });
        eventually("all gone", || processes_with(&marker).is_empty());
    }
}

#[test]
fn missing_program_is_named() {
    let fixture = Fixture::new();
    let mut probe = Probe::launch(&fixture.spec(&["no-such-program"]));
    let SandboxEvent::Failed { reason } = probe.control.event().unwrap() else { panic!("it ran") };
    let expected = format!(
        "failed to start `no-such-program` in `{}`: No such file or directory (os error 2)",
        fixture.path("session")
    );
    assert_eq!(reason, expected);
    assert_eq!(probe.wait().status, Some(125));
}

#[test]
fn failing_grant_in_the_spec_fails_the_launch() {
    let fixture = Fixture::new();
    let mut spec = fixture.probe_spec();
    spec.mounts =
        vec![ironcurtain_sandbox::Mount::new(fixture.path("no"), ironcurtain_sandbox::MountAccess::ReadOnly)];
    let mut probe = Probe::launch(&spec);
    let SandboxEvent::Failed { reason } = probe.control.event().unwrap() else { panic!("it ran") };
    assert_eq!(reason, format!("`{}` does not exist", fixture.path("no")));
}

#[test]
fn missing_session_directory_is_named() {
    let fixture = Fixture::new();
    std::fs::remove_dir(fixture.path("session")).unwrap();
    let mut probe = Probe::launch(&fixture.probe_spec());
    let SandboxEvent::Failed { reason } = probe.control.event().unwrap() else { panic!("it ran") };
    assert!(reason.contains(&fixture.path("session")), "{reason}");
    assert!(reason.contains("No such file or directory"), "{reason}");
}

#[test]
fn missing_supervisor_is_an_error() {
    let fixture = Fixture::new();
    let missing = std::path::Path::new("/no/such/supervisor");
    let error = launch(&fixture.probe_spec(), missing, |_| panic!("the sandbox ran")).unwrap_err();
    let expected =
        "failed to start the sandbox program `/no/such/supervisor`: No such file or directory (os error 2)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn closed_stream_is_noticed_at_once() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    Write::write_all(probe.stdin.as_mut().unwrap(), b"close-stdout\n").unwrap();
    let mut rest = String::new();
    probe.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(probe.ended.try_recv().is_err());

    let mut probe = fixture.probe();
    probe.stdin = None;
    assert_eq!(probe.wait().status, Some(0));
}

#[test]
fn killing_the_supervisor_at_any_time_leaves_nothing() {
    let fixture = Fixture::new();
    for round in 0..ROUNDS {
        let marker = marker(&fixture, round);
        let probe = Probe::launch(&fixture.spec(&[&probe(), &marker]));
        thread::sleep(STEP * round);
        probe.kill.kill();
        assert_eq!(probe.wait(), SandboxExit { status: None, signal: Some(9) });
        eventually("all gone", || processes_with(&marker).is_empty());
    }
}

#[test]
fn killing_any_sandbox_process_at_any_time_leaves_nothing() {
    let fixture = Fixture::new();
    for round in 0..ROUNDS {
        let marker = marker(&fixture, round);
        let probe = Probe::launch(&fixture.spec(&[&probe(), &marker]));
        thread::sleep(STEP * round);
        // Processes appear one after another, so the delay also determines the victim.
        let mut victims = Vec::new();
        eventually("a process to kill", || {
            victims = processes_with(&marker);
            !victims.is_empty()
        });
        let (victim, _) = victims[round as usize % victims.len()];
        // Ignores the error: if the process has already exited, this round tests nothing.
        let _ = kill_process(Pid::from_raw(victim.cast_signed()).unwrap(), Signal::KILL);
        let ended = probe.wait();
        assert_ne!(ended.status, Some(0));
        eventually("all gone", || processes_with(&marker).is_empty());
    }
}

#[test]
fn killing_the_launcher_at_any_time_leaves_nothing() {
    let fixture = Fixture::new();
    for round in 0..ROUNDS {
        let marker = marker(&fixture, round);
        let spec = serde_json::to_string(&fixture.spec(&[&probe(), &marker])).unwrap();
        let mut parent = Command::new(launcher())
            .args([supervisor().to_str().unwrap(), &spec])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "about to launch\n");
        let supervises = format!("--supervise\0{}\0", parent.id());
        thread::sleep(STEP * round);
        parent.kill().unwrap();
        parent.wait().unwrap();
        eventually("all gone", || {
            processes_with(&marker).is_empty() && processes_with(&supervises).is_empty()
        });
    }
}

fn marker(fixture: &Fixture, round: u32) -> String {
    format!("marker-{}-{round}-", fixture.dir.path().file_name().unwrap().to_str().unwrap())
}
