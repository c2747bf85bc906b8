//! The metrics match the test's calls, and a refused path is recorded along with the roots.

use crate::client::TIMEOUT;
use crate::hostile;
use crate::machine::Machine;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};

/// Returns the value of the metric with this name. The name includes the labels.
fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().unwrap())
}

fn figures(world: &World) -> String {
    match world.request(Request::Metrics) {
        Reply::Metrics(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn metrics_match_the_calls_made() {
    let world = hostile::world();
    let (granted, other) = (world.file("docs/a.txt", "a"), world.file("other/b.txt", "b"));
    let mut client = world.connect("hostile");
    for _ in 0..3 {
        client.plain("now").ok();
    }
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.open(&granted).ok();
    client.open(&other).refused("the user denied this call");
    let ours = world.home.audit().join("audit.jsonl");
    client.open(&ours).refused("structural-protected-path");
    eventually("the last call is counted", TIMEOUT, || {
        figure(&figures(&world), "ironcurtain_call_seconds_count") == 4.0
    });
    let text = figures(&world);
    for (name, expected) in [
        ("ironcurtain_calls_total{decision=\"allow\"}", 4.0),
        ("ironcurtain_calls_total{decision=\"escalate\"}", 2.0),
        ("ironcurtain_calls_total{decision=\"deny\"}", 1.0),
        ("ironcurtain_questions_total", 2.0),
        ("ironcurtain_questions_open", 0.0),
        ("ironcurtain_answers_total{kind=\"approved\"}", 1.0),
        ("ironcurtain_answers_total{kind=\"denied\"}", 1.0),
        ("ironcurtain_answer_seconds_count", 2.0),
        ("ironcurtain_sessions_total", 1.0),
        ("ironcurtain_sessions_open", 1.0),
        ("ironcurtain_server_restarts_total", 0.0),
        ("mcp_roots_violations_total", 2.0),
        ("ironcurtain_memory_bytes", 0.0),
        ("ironcurtain_memory_limit_bytes", 512.0 * 1024.0 * 1024.0),
    ] {
        assert_eq!(figure(&text, name), expected, "{name} of {text}");
    }
    // Counts only calls that needed no approval.
    let forwarded = figure(&text, "ironcurtain_call_forward_seconds_count");
    assert!((1.0..=3.0).contains(&forwarded), "{text}");
    eventually("the metric equals the number of entries", TIMEOUT, || {
        let written = figure(&figures(&world), "ironcurtain_record_entries_total");
        written == world.activity().last().unwrap().seq as f64
    });
    drop(client);
    eventually("the session is over", TIMEOUT, || {
        figure(&figures(&world), "ironcurtain_sessions_open") == 0.0
    });
}

#[test]
fn refused_path_is_recorded_with_roots_and_allowed_path_without() {
    let world = World::new();
    let (granted, other) = (world.file("docs/a.txt", "a"), world.file("other/b.txt", "b"));
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.read(&granted).ok();
    // The server has requested its roots, so it is notified of a new root.
    let more = world.file("more/c.txt", "c");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.read(&more).ok();
    let told = figure(&figures(&world), "mcp_roots_cache_invalidations_total");
    assert!(told >= 1.0, "the server was notified of a new root");
    client.read(&other).refused("the user denied this call");
    let entries: Vec<Value> = world.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let crossed: Vec<&Value> = entries.iter().filter(|e| e["event"] == "boundary_violation").collect();
    let [violation] = crossed[..] else { panic!("{crossed:?}") };
    let roots: Vec<String> = world.sessions()[0].roots.iter().map(|root| root.path.clone()).collect();
    assert_eq!(roots.len(), 3, "{roots:?}");
    let roots = json!(roots);
    assert_eq!((&violation["path"], &violation["roots"]), (&json!(other), &roots));
    assert!(world.audit().intact);
}

#[test]
fn metrics_and_audit_search_work_with_and_without_daemon() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let mut client = machine.connect();
    for _ in 0..3 {
        client.plain("now").ok();
    }
    let said = |machine: &Machine, arguments: &[&str]| {
        let output = machine.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let figures = said(&machine, &["metrics"]);
    assert_eq!(figure(&figures, "ironcurtain_calls_total{decision=\"allow\"}"), 3.0, "{figures}");
    let search = ["audit", "search", "--tool", "now", "--decision", "allow", "--json"];
    let found = |machine: &Machine| {
        let found: Value = serde_json::from_str(&said(machine, &search)).unwrap();
        found.as_array().unwrap().len()
    };
    assert_eq!(found(&machine), 3);
    client.plain("now").ok();
    assert_eq!(found(&machine), 4);
    client.hang_up();
    machine.command(&["stop"]);
    machine.wait();
    assert_eq!(found(&machine), 4);
    let exported = said(&machine, &["audit", "export", "--tool", "now"]);
    let results = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone());
    assert_eq!(results.filter(|result| result == "ok").count(), 4);
    // The end of the log can also be verified while the daemon is not running.
    machine.verify();
    let log = machine.home.audit().join("audit.jsonl");
    let whole = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    std::fs::write(&log, lines[..lines.len() - 1].concat()).unwrap();
    let verified = machine.command(&["audit", "verify"]);
    let told = String::from_utf8(verified.stdout).unwrap();
    assert!(!verified.status.success() && told.contains("THE AUDIT LOG WAS CHANGED"), "{told}");
    assert!(
        told.contains(&format!("it ends after {} of {} entries", lines.len() - 1, lines.len())),
        "{told}"
    );
    std::fs::write(&log, whole).unwrap();
    machine.verify();
}

#[test]
fn in_flight_message_memory_is_a_metric() {
    let world = hostile::world();
    let mut deaf = world.connect_non_reading("hostile");
    deaf.begin_call("big", json!({ "bytes": 3_000_000 }));
    eventually("the response is queued", TIMEOUT, || {
        figure(&figures(&world), "ironcurtain_memory_bytes") >= 3_000_000.0
    });
    drop(deaf);
    eventually("no response is queued", TIMEOUT, || {
        figure(&figures(&world), "ironcurtain_memory_bytes") == 0.0
    });
}
