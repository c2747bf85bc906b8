//! Clock changes while the daemon runs: only the boot-time clock advances, or the wall clock is set back or forward.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::Machine;
use crate::world::eventually;
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const QUARTER_HOUR: u64 = 15 * 60;
const DAY: i64 = 24 * 60 * 60;

/// A fake wall clock that a preloaded library provides to a daemon.
struct WallClock {
    file: File,
    /// Command prefix that starts a program with the fake clock.
    by: String,
}

impl WallClock {
    /// Builds the library, and creates a clock in this folder that agrees with the real clock.
    fn made_in(folder: &Path) -> Self {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/wall_clock/wall_clock.c");
        let (library, path): (PathBuf, PathBuf) = (folder.join("wall_clock.so"), folder.join("wall_clock"));
        let mut make = Command::new("cc");
        make.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
        assert!(make.status().unwrap().success());
        let file = File::create(&path).unwrap();
        let by = format!("env LD_PRELOAD='{}' WALL_CLOCK='{}' ", library.display(), path.display());
        let clock = Self { file, by };
        clock.is_set_by(0);
        clock
    }

    /// Sets the fake clock this many seconds ahead of the real one.
    fn is_set_by(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}

/// Returns the time of the newest audit entry, in milliseconds since the Unix epoch.
fn newest_entry(machine: &Machine) -> u64 {
    let record = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let newest: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
    newest["timestamp"].as_u64().unwrap()
}

/// Opens a file, and answers the question by typing this line.
fn asked(machine: &mut Machine, client: &mut Client, path: &Path, line: &str) -> crate::client::Outcome {
    let call = client.begin_call("open", json!({ "path": path }));
    machine.wait_for_output("Your answer: ");
    machine.types(line);
    client.outcome(call)
}

fn grants(machine: &Machine) -> usize {
    let listed: Value = serde_json::from_slice(&machine.command(&["grants", "--json"]).stdout).unwrap();
    listed["grants"].as_array().unwrap().len()
}

#[test]
fn timed_grant_expires_by_boot_clock_after_wall_clock_is_set_back() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    hostile::make_server_known_on(&machine);
    let mut client = machine.connect();
    // Answer 3 allows the file for 15 minutes.
    asked(&mut machine, &mut client, &secret, "3").ok();
    assert_eq!(grants(&machine), 1);

    // Half of the 15 minutes have passed.
    machine.kill();
    machine.start_with_clock_offset(QUARTER_HOUR / 2);
    let mut client = machine.connect();
    assert_eq!(client.open(&secret).ok(), "secret");
    assert_eq!(grants(&machine), 1);

    // The grant expires while the daemon is running, and only the kernel's timer reports it.
    machine.kill();
    machine.start_with_clock_offset(QUARTER_HOUR - 8);
    let mut client = machine.connect();
    eventually("the grant expires", TIMEOUT, || grants(&machine) == 0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    let record = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    assert_eq!(record.matches("a grant expired").count(), 1);
    machine.verify();
}

/// Starts a daemon with a fake wall clock and a 15-minute grant for a file.
fn start_with_timed_grant() -> (Machine, WallClock, PathBuf, Client) {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    let clock = WallClock::made_in(&machine.home.user_home);
    machine.start_via(&clock.by);
    hostile::make_server_known_on(&machine);
    let mut client = machine.connect();
    asked(&mut machine, &mut client, &secret, "3").ok();
    (machine, clock, secret, client)
}

#[test]
fn setting_wall_clock_back_does_not_extend_timed_grant() {
    let (mut machine, clock, secret, mut client) = start_with_timed_grant();
    let before = newest_entry(&machine);
    clock.is_set_by(-DAY);
    assert_eq!(client.open(&secret).ok(), "secret");
    assert!(newest_entry(&machine) < before, "the daemon does not see the clock that was set");
    assert_eq!(grants(&machine), 1);

    // By the wall clock, a day and 15 minutes remain. By the boot-time clock, only a few seconds remain.
    machine.kill();
    machine.start_with_clock_offset_via(QUARTER_HOUR - 8, &clock.by);
    let mut client = machine.connect();
    eventually("the grant expires", TIMEOUT, || grants(&machine) == 0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    assert!(newest_entry(&machine) < before);
    machine.verify();
}

#[test]
fn setting_wall_clock_forward_expires_timed_grant_permanently() {
    let (mut machine, clock, secret, mut client) = start_with_timed_grant();
    clock.is_set_by(i64::try_from(QUARTER_HOUR / 2).unwrap());
    assert_eq!(client.open(&secret).ok(), "secret");
    clock.is_set_by(DAY);
    // The kernel reports changes to its own clock but not to the fake one, so the next call detects the change.
    client.open(&secret).refused("the permissions for it, changed before the server got it");
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    // The grant remains expired even if the clock is set back again.
    clock.is_set_by(0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    assert_eq!(grants(&machine), 0);
    machine.verify();
}
