//! The clocks, moved under the real program: the one that nobody sets has run on while the wall clock has not, and the wall clock is
//! set back and forward while it runs.

use crate::client::{BOUND, Client};
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

/// The wall clock of a trusted process, as the calls of its C library tell it.
struct WallClock {
    file: File,
    /// The command that starts a program with it.
    by: String,
}

impl WallClock {
    /// One that is not set yet, beside the files of a machine.
    fn made_in(folder: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/clocks/wall_clock.c");
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

    /// Sets it to so many seconds after the machine's.
    fn is_set_by(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}

/// The moment of the newest entry on record.
fn newest_entry(machine: &Machine) -> u64 {
    let record = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let newest: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
    newest["timestamp"].as_u64().unwrap()
}

/// Opens a file, about which the person is asked and answers by this line.
fn asked(machine: &mut Machine, client: &mut Client, path: &Path, line: &str) -> crate::client::Outcome {
    let call = client.begin_call("open", json!({ "path": path }));
    machine.wait_until_said("Your answer: ");
    machine.types(line);
    client.outcome(call)
}

fn grants(machine: &Machine) -> usize {
    let listed: Value = serde_json::from_slice(&machine.command(&["grants", "--json"]).stdout).unwrap();
    listed["grants"].as_array().unwrap().len()
}

#[test]
fn a_quarter_of_an_hour_ends_by_the_clock_that_nobody_sets_when_the_wall_clock_was_set_back() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    // For a quarter of an hour.
    asked(&mut machine, &mut client, &secret, "3").ok();
    assert_eq!(grants(&machine), 1);

    // Half of it has passed.
    machine.kill();
    machine.start_later(QUARTER_HOUR / 2);
    let mut client = machine.connect();
    assert_eq!(client.open(&secret).ok(), "secret");
    assert_eq!(grants(&machine), 1);

    // The end comes while it runs, which nobody but the kernel tells it.
    machine.kill();
    machine.start_later(QUARTER_HOUR - 8);
    let mut client = machine.connect();
    eventually("the end of the grant", BOUND, || grants(&machine) == 0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    let record = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    assert_eq!(record.matches("a grant ended by the clock").count(), 1);
    machine.verify();
}

/// A trusted process with a wall clock of its own, and a file that a client may open for a quarter of an hour.
fn granted_by_a_wall_clock() -> (Machine, WallClock, PathBuf, Client) {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    let clock = WallClock::made_in(&machine.home.person);
    machine.start_by(&clock.by);
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    asked(&mut machine, &mut client, &secret, "3").ok();
    (machine, clock, secret, client)
}

#[test]
fn a_wall_clock_that_is_set_back_by_a_day_lets_a_quarter_of_an_hour_last_no_longer() {
    let (mut machine, clock, secret, mut client) = granted_by_a_wall_clock();
    let before = newest_entry(&machine);
    clock.is_set_by(-DAY);
    assert_eq!(client.open(&secret).ok(), "secret");
    assert!(newest_entry(&machine) < before, "the trusted process has the clock that was set");
    assert_eq!(grants(&machine), 1);

    // A day and a quarter of an hour are left by the wall clock, and some seconds by the other.
    machine.kill();
    machine.start_later_by(QUARTER_HOUR - 8, &clock.by);
    let mut client = machine.connect();
    eventually("the end of the grant", BOUND, || grants(&machine) == 0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    assert!(newest_entry(&machine) < before);
    machine.verify();
}

#[test]
fn a_wall_clock_that_is_set_forward_ends_a_quarter_of_an_hour_at_the_next_call_and_for_good() {
    let (mut machine, clock, secret, mut client) = granted_by_a_wall_clock();
    clock.is_set_by(i64::try_from(QUARTER_HOUR / 2).unwrap());
    assert_eq!(client.open(&secret).ok(), "secret");
    clock.is_set_by(DAY);
    // Nobody tells of this clock that it was set, as the kernel does of its own: the call itself finds out.
    client.open(&secret).refused("the permissions for it, changed before the server got it");
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    // It is over, whatever the clock says then.
    clock.is_set_by(0);
    asked(&mut machine, &mut client, &secret, "0").refused("the user denied this call");
    assert_eq!(grants(&machine), 0);
    machine.verify();
}
