//! The clock that nobody sets, moved under the real program: it has run on while the wall clock has not, as after somebody has set
//! that back.

use crate::client::{BOUND, Client};
use crate::hostile;
use crate::machine::Machine;
use crate::world::eventually;
use serde_json::{Value, json};
use std::path::Path;

const QUARTER_HOUR: u64 = 15 * 60;

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
