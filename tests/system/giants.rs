//! Messages of tens of megabytes, there and back: what is within the budget arrives, what is over it is refused by name, and the
//! trusted process has no more memory for it than the budget says.

use crate::hostile;
use crate::machine::Machine;
use serde_json::json;
use std::io::Write;
use std::time::Instant;

const MIB: u64 = 1024 * 1024;

/// The length of a giant, by `IRONCURTAIN_GIANT`.
fn giant() -> usize {
    std::env::var("IRONCURTAIN_GIANT").map_or(5_000_000, |n| n.parse().unwrap())
}

/// A number of the status of the trusted process, in MiB.
fn status(machine: &Machine, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", machine.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024 / MIB
}

#[test]
fn a_giant_goes_there_and_back_and_one_over_the_budget_is_refused_by_name() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let mut client = machine.connect();
    client.call("echo", json!({ "n": 1 })).ok();
    let before = status(&machine, "VmRSS");
    let (text, began) = ("x".repeat(giant()), Instant::now());
    let sent = client.call("echo", json!({ "text": text }));
    let whole = json!({ "text": text }).to_string();
    assert!(sent.ok() == whole, "{:.300}", sent.text);
    let (echoed, began) = (began.elapsed(), Instant::now());
    assert_eq!(client.call("big", json!({ "bytes": giant() })).ok().len(), giant());
    let answered = began.elapsed();
    let most = status(&machine, "VmHWM") - before;
    let over = "x".repeat(64 * 1024 * 1024);
    client.call("echo", json!({ "text": over })).refused("at most 67108864 are accepted");
    client.call("big", json!({ "bytes": over.len() })).refused("IronCurtain takes at most 64 MB");
    let over = status(&machine, "VmHWM") - before;
    client.call("echo", json!({ "n": 1 })).ok();
    let left = status(&machine, "VmRSS").saturating_sub(before);
    // It is for whoever reads the figures.
    let _ = writeln!(
        std::io::stderr(),
        "{} bytes there and back in {echoed:?}, back alone in {answered:?}; at most {most} MiB for it, {over} MiB for what is \
         refused, and {left} MiB afterwards",
        giant()
    );
    assert!(most < 512 && over < 512, "{most} and {over} MiB");
}
