//! Whichever way the daemon shuts down, each autostart file left by a server is quarantined and recorded exactly
//! once.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::{Machine, descendants, pid, suspend};
use crate::world::eventually;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Returns a machine with a suspended daemon. During the suspension, a session's server created an autostart file and
/// another file in a granted folder.
fn leave_autostart_file() -> (Machine, Client, [PathBuf; 2]) {
    let mut machine = Machine::new(hostile::install);
    let report = machine.file("docs/below/report.txt", "text");
    machine.start();
    let mut client = machine.connect();
    let call = client.begin_call("change", json!({ "path": report }));
    machine.wait_for_output("Your answer: ");
    // Answer 5 allows the folder for this session.
    machine.types("5");
    client.outcome(call).ok();
    let folder = report.parent().unwrap();
    let script = "(while ! [ -e go ]; do sleep 0.01; done; mkdir deep; \
        echo '{\"mcpServers\":{\"x\":{\"command\":\"evil\"}}}' > deep/.mcp.json; echo x > deep/plain; touch done) > /dev/null 2>&1 &";
    client.run(folder, script).ok();
    machine.freeze();
    std::fs::write(folder.join("go"), "").unwrap();
    eventually("the file is planted", TIMEOUT, || folder.join("done").exists());
    let left = ["deep/.mcp.json", "deep/plain"].map(|name| folder.join(name));
    assert!(left.iter().all(|path| path.exists()), "the server failed to plant the file");
    (machine, client, left)
}

/// Returns the audit entries about the quarantine of a path.
fn quarantine_entries(machine: &Machine, path: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let about = format!("`{}`", path.to_str().unwrap());
    let lines = log.lines().filter(|line| line.contains("file-quarantined") && line.contains(&about));
    lines.map(str::to_owned).collect()
}

/// Asserts that the autostart file was removed and recorded, and that the other file is unchanged.
#[track_caller]
fn assert_cleaned_up(machine: &Machine, [startup, plain]: &[PathBuf; 2]) {
    assert!(!startup.exists() && plain.exists());
    let told = quarantine_entries(machine, startup);
    assert_eq!(told.len(), 1, "{told:?}");
    let place = machine.home.sandboxes().join("quarantine");
    assert!(told[0].contains(&format!("was moved to `{}/", place.to_str().unwrap())), "{told:?}");
}

/// Resumes the daemon.
fn resume(machine: &Machine) {
    kill_process(pid(machine.pid()), Signal::CONT).unwrap();
}

#[test]
fn sigterm_to_daemon_quarantines_autostart_files() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut machine, client, left) = leave_autostart_file();
        kill_process(pid(machine.pid()), signal).unwrap();
        resume(&machine);
        assert!(machine.wait().success());
        assert_cleaned_up(&machine, &left);
        drop(client);
    }
}

#[test]
fn signal_to_all_processes_quarantines_autostart_files() {
    // At logout, the supervisors receive the signal first.
    let (mut machine, client, left) = leave_autostart_file();
    let all = descendants(machine.pid());
    assert!(all.len() > 1, "{all:?}");
    for process in &all {
        // The previous signal may already have terminated the supervisor.
        let _ = kill_process(pid(process.pid), Signal::TERM);
    }
    kill_process(pid(machine.pid()), Signal::TERM).unwrap();
    resume(&machine);
    assert!(machine.wait().success());
    assert_cleaned_up(&machine, &left);
    machine.assert_clean(&all);
    drop(client);
}

#[test]
fn stop_command_quarantines_autostart_files() {
    let (mut machine, client, left) = leave_autostart_file();
    resume(&machine);
    assert!(machine.command(&["stop"]).status.success());
    // The command returns only after cleanup is complete and another daemon can start.
    assert_cleaned_up(&machine, &left);
    let log = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    assert!(log.lines().last().unwrap().contains("the trusted process ended"), "{log}");
    assert!(machine.wait().success());
    drop(client);
}

#[test]
fn killed_daemons_final_scan_runs_at_next_start_and_reports_once() {
    for kills_supervisor in [false, true] {
        let (mut machine, client, left) = leave_autostart_file();
        let all = descendants(machine.pid());
        if kills_supervisor {
            all.iter().find(|p| p.exe().ends_with("ironcurtain-sandbox")).unwrap().kill();
        }
        let below = machine.kill();
        machine.assert_clean(&below);
        assert!(left[0].exists() && quarantine_entries(&machine, &left[0]).is_empty());
        machine.start();
        eventually("the quarantine is recorded", TIMEOUT, || {
            !quarantine_entries(&machine, &left[0]).is_empty()
        });
        assert_cleaned_up(&machine, &left);
        // The quarantine is reported once.
        kill_process(pid(machine.pid()), Signal::TERM).unwrap();
        machine.wait();
        machine.start();
        machine.verify();
        assert!(machine.command(&["stop"]).status.success());
        assert_cleaned_up(&machine, &left);
        machine.wait();
        drop(client);
    }
}

#[test]
fn final_scan_completes_after_kills_at_any_instant() {
    let mut later = 0;
    for millis in [1, 2, 4, 6, 8, 10, 12, 15, 20, 30] {
        let (mut machine, client, left) = leave_autostart_file();
        machine.kill();
        machine.spawn();
        // Varies the moment of the kill, so that it falls into reading the journal, scanning the folder or reporting
        // the result.
        std::thread::sleep(std::time::Duration::from_millis(millis));
        machine.kill();
        later += usize::from(quarantine_entries(&machine, &left[0]).is_empty());
        machine.start();
        eventually("the quarantine is recorded", TIMEOUT, || {
            !quarantine_entries(&machine, &left[0]).is_empty()
        });
        // All final scans are complete now. A kill between the audit entry and the journal entry causes a second
        // report.
        assert!(machine.command(&["stop"]).status.success());
        assert!(!left[0].exists() && left[1].exists());
        assert!(
            matches!(quarantine_entries(&machine, &left[0]).len(), 1 | 2),
            "{:?}",
            quarantine_entries(&machine, &left[0])
        );
        machine.wait();
        drop(client);
    }
    assert!(later > 0, "the quarantine was reported before each kill");
}

#[test]
fn stop_command_names_sandboxes_still_being_scanned() {
    let (mut machine, client, left) = leave_autostart_file();
    resume(&machine);
    let session = machine.only_session();
    // Selects a process whose sandbox is still running.
    let all = descendants(machine.pid());
    let supervisor = all.iter().find(|p| p.exe().ends_with("ironcurtain-sandbox")).unwrap();
    suspend(supervisor.pid);
    let stopped = machine.command(&["stop"]);
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(
        said.contains(&format!(
            "Scanning for files that other programs may run: session {session}, server hostile"
        )),
        "{said}"
    );
    assert!(stopped.status.success());
    assert!(machine.wait().success());
    assert_cleaned_up(&machine, &left);
    drop(client);
}
