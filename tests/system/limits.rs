//! Exhausted resources and endless loops cause an immediate error with a reason.

use crate::client::TIMEOUT;
use crate::hostile;
use crate::machine::{Machine, pid};
use crate::world::{eventually, programs};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;

/// Returns the contents of the session logs.
fn session_logs(machine: &Machine) -> String {
    let sessions = std::fs::read_dir(machine.home.sessions()).unwrap().flatten();
    sessions.map(|s| std::fs::read_to_string(s.path().join("session.log")).unwrap_or_default()).collect()
}

fn record(machine: &Machine) -> String {
    std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap()
}

#[test]
fn session_looping_output_to_input_ends_with_a_reason() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let (from, mut to) = std::io::pipe().unwrap();
    let mut shim = Command::new(programs().join("ironcurtain-shim"))
        .args(["--server", "hostile"])
        .env("IRONCURTAIN_HOME", machine.ours())
        .stdin(from)
        .stdout(to.try_clone().unwrap())
        .spawn()
        .unwrap();
    to.write_all(b"no message\n").unwrap();
    drop(to);
    eventually("the session has ended", TIMEOUT, || shim.try_wait().unwrap().is_some());
    let why = "messages to the client come back as its input";
    eventually("the session's log contains the reason", TIMEOUT, || session_logs(&machine).contains(why));
    eventually("the reason is recorded once", TIMEOUT, || {
        let record = record(&machine);
        let ends: Vec<&str> = record.lines().filter(|line| line.contains(why)).collect();
        ends.len() == 1 && ends[0].contains("was ended: ")
    });
    machine.verify();

    // A session that only sends invalid messages and reads the errors keeps running.
    let secret = machine.file("docs/secret.txt", "secret");
    let mut client = machine.connect();
    for _ in 0..10 {
        client.send_raw(b"no message\n");
    }
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("1");
    client.outcome(call).ok();
}

#[test]
fn cancelled_pending_calls_free_their_memory() {
    const CALLS: usize = 60;
    const LENGTH: usize = 200 * 1024;
    // Number of copies of the text in a question and its call.
    const COPIES: usize = 4;
    let mut machine = Machine::new(|prepared| {
        hostile::install(prepared);
        let file = prepared.home.policy().join("tool-annotations.json");
        let mut annotations: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let tools = annotations["servers"]["hostile"]["tools"].as_array_mut().unwrap();
        let change = tools.iter_mut().find(|tool| tool["toolName"] == "change").unwrap();
        change["args"]["content"] = json!(["none"]);
        std::fs::write(file, annotations.to_string()).unwrap();
    });
    let report = machine.file("docs/report.txt", "text");
    machine.start();
    let mut client = machine.connect();
    // Occupies the terminal, so that all later questions wait.
    let first = client.begin_call("change", json!({ "path": report, "content": "short" }));
    machine.wait_for_output("Your answer: ");
    let before = resident(&machine);
    let content = "x".repeat(LENGTH);
    for _ in 0..CALLS {
        let id = client.begin_call("change", json!({ "path": report, "content": content }));
        client.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        }));
    }
    client.request("ping", json!({}));
    // A tenth of the memory that the calls used.
    let most = before + (CALLS * LENGTH * COPIES / 10) as u64;
    eventually("the memory is released", TIMEOUT, || resident(&machine) < most);
    machine.types("1");
    client.outcome(first).ok();
}

/// Returns the daemon's resident memory, in bytes.
fn resident(machine: &Machine) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", machine.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

#[test]
fn question_is_denied_at_once_when_descriptors_run_out() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    let mut client = machine.connect();
    let daemon = machine.pid();
    // Uses up this process's descriptors.
    let whole = getrlimit(Resource::Nofile).maximum;
    let limited = |current| {
        let limit = Rlimit { current, maximum: whole };
        prlimit(Some(pid(daemon)), Resource::Nofile, limit).unwrap();
    };
    let taken = std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count() as u64;
    // Leaves enough descriptors to judge and record the call.
    limited(Some(taken + 20));
    let began = std::time::Instant::now();
    let refused = client.call("open", json!({ "path": secret }));
    refused.refused("no file descriptors left to show a question");
    // The call is refused well before the question's deadline, because no question was shown.
    assert!(began.elapsed() < TIMEOUT / 2, "{:?}", began.elapsed());
    let record = record(&machine);
    assert!(record.lines().any(|line| line.contains("\"unavailable\"")), "{record}");

    limited(whole);
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("1");
    client.outcome(call).ok();
    machine.verify();
}
