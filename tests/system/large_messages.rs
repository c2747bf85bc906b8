//! Messages of tens of megabytes: those within the memory limit arrive, larger ones are refused with a reason, and
//! the daemon's memory stays within the limit.

use crate::hostile;
use crate::machine::Machine;
use serde_json::json;
use std::io::Write;
use std::time::Instant;

const MIB: u64 = 1024 * 1024;

/// Returns the size of the large message in bytes, from `IRONCURTAIN_GIANT`.
fn giant() -> usize {
    std::env::var("IRONCURTAIN_GIANT").map_or(5_000_000, |n| n.parse().unwrap())
}

/// Returns a value from the daemon's `/proc/PID/status`, in MiB.
fn status(machine: &Machine, name: &str) -> u64 {
    crate::load::status(machine, name) / MIB
}

#[test]
fn giant_message_round_trips_and_one_over_budget_is_refused() {
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
    client.call("echo", json!({ "text": over })).refused("the limit is 67108864 bytes");
    client.call("big", json!({ "bytes": over.len() })).refused("MB; the limit is 64 MB");
    let over = status(&machine, "VmHWM") - before;
    client.call("echo", json!({ "n": 1 })).ok();
    let left = status(&machine, "VmRSS").saturating_sub(before);
    let _ = writeln!(
        std::io::stderr(),
        "{} bytes there and back in {echoed:?}, back alone in {answered:?}; at most {most} MiB for it, {over} MiB for what is \
         refused, and {left} MiB afterwards",
        giant()
    );
    assert!(most < 512 && over < 512, "{most} and {over} MiB");
}
