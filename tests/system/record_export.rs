//! Exports the record to a collector that decodes it with the official definitions. Verifies the log on another machine
//! with signed heads.

use crate::client::TIMEOUT;
use crate::hostile;
use crate::machine::Machine;
use crate::world::{eventually, installed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Texts that must never leave the machine, planted in agent and server data.
const SECRETS: [&str; 3] = ["planted-argument", "planted-content", "ghp_plantedTOKEN0123456789"];

pub(crate) struct Collector {
    dir: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mode"), "accept").unwrap();
        let (process, port) = spawn(dir.path(), 0);
        Self { dir, port, process }
    }

    fn restart(&mut self) {
        (self.process, _) = spawn(self.dir.path(), self.port);
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn behave(&self, mode: &str) {
        std::fs::write(self.dir.path().join("mode"), mode).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the complete lines of a file.
    fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        self.lines("records.jsonl")
    }

    /// Returns the number of requests with records that arrived while the collector was in this mode.
    fn arrived(&self, mode: &str) -> usize {
        self.lines("arrived.jsonl").iter().filter(|arrived| *arrived == mode).count()
    }

    /// Returns the ids of the entries by sequence number.
    fn ids(&self) -> BTreeMap<u64, BTreeSet<String>> {
        let mut ids = BTreeMap::<u64, BTreeSet<String>>::new();
        for record in self.records() {
            if let Some(seq) = record["attributes"]["ironcurtain.seq"].as_u64() {
                let id = record["attributes"]["log.record.uid"].as_str().unwrap();
                ids.entry(seq).or_default().insert(id.to_owned());
            }
        }
        ids
    }

    /// Asserts that the received bytes contain none of these secrets.
    #[track_caller]
    pub(crate) fn assert_without(&self, secrets: &[&str]) {
        let raw = std::fs::read(self.dir.path().join("raw")).unwrap();
        for secret in secrets {
            assert!(!raw.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{secret}");
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(dir: &Path, port: u16) -> (Child, u16) {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/record_export/collector.py");
    let mut process = Command::new("/usr/bin/python3")
        .arg(script)
        .arg(dir)
        .arg(port.to_string())
        .env("PYTHONPATH", installed("pypi"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (process, line.trim().parse().unwrap())
}

fn machine(collector: &Collector, paths: &str) -> Machine {
    let url = collector.url();
    Machine::new(|prepared| {
        hostile::install(prepared);
        let config = json!({ "questionsPerMinute": 1000, "export": { "url": url, "paths": paths } });
        std::fs::write(prepared.home.config.join("config.json"), config.to_string()).unwrap();
    })
}

/// Returns the hashes of all log entries, by sequence number.
fn links(machine: &Machine) -> BTreeMap<u64, String> {
    let text = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|entry| (entry["seq"].as_u64().unwrap(), entry["link"].as_str().unwrap().to_owned())).collect()
}

fn said(machine: &Machine, arguments: &[&str]) -> (Option<i32>, String) {
    let output = machine.command(arguments);
    let all = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(all).unwrap())
}

#[test]
fn decision_is_decoded_and_contains_no_argument_and_no_secret() {
    let collector = Collector::start();
    let mut machine = machine(&collector, "hashed");
    let secret = machine.file("docs/planted-path.txt", "planted-content");
    machine.start();
    let mut client = machine.connect();
    let planted = json!({ "n": "1", "text": "planted-argument ghp_plantedTOKEN0123456789" });
    client.call("echo", planted).ok();
    let id = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("1");
    client.outcome(id).ok();
    client.call("open", json!({ "path": machine.home.audit().join("audit.jsonl") })).refused("DENIED");
    let of = |tool: &str, event: &str| {
        let is_it =
            |record: &Value| record["event"] == event && record["attributes"]["gen_ai.tool.name"] == tool;
        collector.records().into_iter().filter(is_it).collect::<Vec<_>>()
    };
    eventually("the calls are exported", TIMEOUT, || {
        of("echo", "ironcurtain.outcome").len() == 1 && of("open", "ironcurtain.decision").len() == 2
    });
    let echo = &of("echo", "ironcurtain.decision")[0];
    let attributes = &echo["attributes"];
    for (name, value) in [
        ("mcp.method.name", json!("tools/call")),
        ("gen_ai.operation.name", json!("execute_tool")),
        ("ironcurtain.server.name", json!("hostile")),
        ("ironcurtain.decision", json!("allow")),
    ] {
        assert_eq!(attributes[name], value, "{name} of {attributes}");
    }
    assert_eq!((&echo["body"], &echo["severity"]), (&json!("request allowed"), &json!("INFO")));
    assert_eq!(echo["resource"]["service.name"], "ironcurtain");
    let denied = of("open", "ironcurtain.decision").pop().unwrap();
    assert_eq!(
        (&denied["severity"], &denied["attributes"]["ironcurtain.decision"]),
        (&json!("WARN"), &json!("deny"))
    );
    let hash = denied["attributes"]["ironcurtain.paths"][0].as_str().unwrap();
    assert!(hash.starts_with("hmac-sha256:"), "{hash}");
    assert!(said(&machine, &["stop"]).0 == Some(0));
    machine.wait();
    // Shutting down sends the remaining entries, the last head and the metrics.
    let names: BTreeSet<String> =
        collector.lines("metrics.jsonl").iter().map(|m| m["name"].as_str().unwrap().to_owned()).collect();
    assert!(
        names.contains("mcp.server.operation.duration") && names.contains("ironcurtain_calls"),
        "{names:?}"
    );
    let links = links(&machine);
    assert!(collector.ids().iter().all(|(seq, ids)| ids.iter().eq([&links[seq]])));
    assert_eq!(collector.ids().keys().max(), links.keys().max(), "the shutdown itself is exported");
    let mut heads = collector.records().into_iter().filter(|record| record["event"] == "ironcurtain.head");
    let newest: Value = serde_json::from_str(heads.next_back().unwrap()["body"].as_str().unwrap()).unwrap();
    assert_eq!(newest["entries"].as_u64(), links.keys().max().copied());
    let person = machine.home.user_home.to_str().unwrap();
    collector.assert_without(&SECRETS);
    collector.assert_without(&["planted-path", person]);
}

#[test]
fn full_paths_are_exported_only_if_enabled() {
    let collector = Collector::start();
    let mut machine = machine(&collector, "full");
    machine.start();
    let log = machine.home.audit().join("audit.jsonl");
    machine.connect().open(&log).refused("DENIED");
    eventually("the path is sent", TIMEOUT, || {
        collector.records().iter().any(|r| r["attributes"]["ironcurtain.paths"] == json!([log]))
    });
    machine.kill();
}

/// Number of calls before and after each kill.
const CALLS: usize = 25;

#[test]
fn kills_during_a_request_lose_and_change_nothing() {
    let mut collector = Collector::start();
    let mut machine = machine(&collector, "none");
    machine.start();
    for kills_collector in [true, false, true, false] {
        // Kills the collector or the daemon while a request is unanswered.
        collector.behave("hold");
        let held = collector.arrived("hold");
        let mut client = machine.connect();
        let mut work = || {
            for _ in 0..CALLS {
                client.plain("now").ok();
            }
        };
        work();
        eventually("a request is held", TIMEOUT, || collector.arrived("hold") > held);
        work();
        if kills_collector {
            collector.kill();
            work();
            collector.behave("accept");
            collector.restart();
        } else {
            machine.kill();
            collector.behave("accept");
            machine.start();
        }
    }
    let last = *links(&machine).keys().max().unwrap();
    eventually("everything arrives", TIMEOUT, || collector.ids().contains_key(&last));
    let (links, ids) = (links(&machine), collector.ids());
    // The export starts after the entries that were already in the log.
    let first = *ids.keys().next().unwrap();
    assert!(first <= 3, "{first}");
    let missing: Vec<u64> = (first..=last).filter(|seq| !ids.contains_key(seq)).collect();
    assert_eq!(missing, [0; 0]);
    assert!(ids.iter().all(|(seq, ids)| ids.iter().eq([&links[seq]])), "each entry has one id, its hash");
    machine.kill();
}

#[test]
fn first_entry_follows_the_last_one_before_the_export_was_enabled() {
    let collector = Collector::start();
    let mut machine = Machine::new(hostile::install);
    machine.start();
    machine.connect().plain("now").ok();
    // The export cannot start while its key is invalid.
    std::fs::write(machine.home.state.join("device-key"), "nonsense").unwrap();
    let before = *links(&machine).keys().max().unwrap();
    let (code, enabled) = said(&machine, &["export", "enable", &collector.url(), "--paths", "none", "--yes"]);
    assert_eq!(code, Some(0), "{enabled}");
    let state = std::fs::read_to_string(machine.home.export_state()).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let enabled_at = state["place"]["written"]["entries"].as_u64().unwrap();
    assert!((before..=*links(&machine).keys().max().unwrap()).contains(&enabled_at), "{enabled_at}");
    eventually("the failure is reported", TIMEOUT, || {
        said(&machine, &["export", "status"]).1.contains("Failing: the stored device key is invalid")
    });
    machine.connect().plain("now").ok();
    machine.kill();
    assert_eq!(collector.arrived("accept"), 0);
    std::fs::remove_file(machine.home.state.join("device-key")).unwrap();
    machine.start();
    let last = *links(&machine).keys().max().unwrap();
    eventually("everything arrives", TIMEOUT, || collector.ids().contains_key(&last));
    assert!(last > enabled_at + 1);
    let sent: Vec<u64> = collector.ids().into_keys().take_while(|seq| *seq <= last).collect();
    assert_eq!(sent, (enabled_at + 1..=last).collect::<Vec<_>>());
    machine.kill();
}

#[test]
fn commands_show_a_sample_turn_the_export_on_and_report_a_dead_collector() {
    let mut collector = Collector::start();
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let mut client = machine.connect();
    client.call("echo", json!({ "text": SECRETS[0] })).ok();
    let (code, sample) = said(&machine, &["export", "sample"]);
    assert!(code == Some(0) && sample.contains("\"gen_ai.tool.name\": \"echo\""), "{sample}");
    assert!(!sample.contains(SECRETS[0]), "{sample}");
    let url = collector.url();
    let (code, refused) = said(&machine, &["export", "enable", &url]);
    assert!(code != Some(0) && refused.contains("pass `--yes`"), "{refused}");
    let (_, off) = said(&machine, &["export", "status"]);
    assert!(off.starts_with("The record is not exported."), "{off}");
    let (code, refused) = said(&machine, &["export", "enable", "http://otel.example.com", "--yes"]);
    assert!(code == Some(1) && refused.contains("use `https`"), "{refused}");
    let (code, enabled) = said(&machine, &["export", "enable", &url, "--paths", "none", "--yes"]);
    assert!(code == Some(0) && enabled.contains("New entries are exported"), "{enabled}");
    eventually("the export starts", TIMEOUT, || machine.home.export_state().exists());
    client.plain("now").ok();
    eventually("an entry arrives", TIMEOUT, || !collector.ids().is_empty());
    let doctor = || said(&machine, &["doctor"]).1;
    assert!(doctor().contains("export: the collector answers"), "{}", doctor());
    collector.kill();
    client.plain("now").ok();
    eventually("the status reports it", TIMEOUT, || {
        said(&machine, &["status"])
            .1
            .contains("The record is not exported: failed to connect to the collector")
    });
    assert!(doctor().contains("PROBLEM  export: failed to connect"), "{}", doctor());
    let (_, failing) = said(&machine, &["export", "status"]);
    assert!(failing.contains("Failing: failed to connect") && failing.contains("Public key"), "{failing}");
    // While the collector is unreachable, calls are neither delayed nor denied.
    client.plain("now").ok();
    collector.restart();
    eventually("the status is good again", TIMEOUT, || {
        !said(&machine, &["status"]).1.contains("The record is not exported")
    });
    let (code, _) = said(&machine, &["export", "disable"]);
    assert_eq!(code, Some(0));
    eventually("the export stops", TIMEOUT, || !machine.home.export_state().exists());
    let before = collector.ids().len();
    client.plain("now").ok();
    machine.kill();
    assert_eq!(collector.ids().len(), before);
    let ocsf = machine.temporary().join("ocsf.jsonl");
    let (code, written) = said(&machine, &["export", "ocsf", ocsf.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{written}");
    let text = std::fs::read_to_string(&ocsf).unwrap();
    assert_eq!(text.lines().count(), links(&machine).len());
    assert!(text.contains("\"class_uid\":6003") && !text.contains(SECRETS[0]), "{text}");
}

#[test]
fn refusing_collector_gets_everything_once_it_accepts() {
    let collector = Collector::start();
    let mut machine = machine(&collector, "none");
    machine.start();
    let mut client = machine.connect();
    for mode in ["503", "401"] {
        collector.behave(mode);
        client.plain("now").ok();
        eventually("the collector refuses", TIMEOUT, || collector.arrived(mode) > 0);
    }
    collector.behave("accept");
    let last = *links(&machine).keys().max().unwrap();
    eventually("everything arrives", TIMEOUT, || collector.ids().contains_key(&last));
    let ids = collector.ids();
    assert!(ids.keys().copied().eq(*ids.keys().next().unwrap()..=*ids.keys().max().unwrap()));
    machine.kill();
}

/// Copies the log to another machine and verifies it there with the heads and the public key.
fn verified(machine: &Machine, key: &str, edit: impl Fn(String) -> String) -> (Option<i32>, String) {
    let other = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    std::fs::write(other.path().join("audit.jsonl"), edit(text)).unwrap();
    let (heads, log): (PathBuf, &Path) = (machine.home.audit_heads(), other.path());
    let arguments = ["--heads", heads.to_str().unwrap(), "--key", key, "--log", log.to_str().unwrap()];
    said(machine, &[&["audit", "verify"][..], &arguments].concat())
}

#[test]
fn signed_heads_prove_elsewhere_that_a_log_was_not_cut_or_rewritten() {
    let collector = Collector::start();
    let mut machine = machine(&collector, "none");
    machine.start();
    machine.connect().plain("now").ok();
    assert_eq!(said(&machine, &["stop"]).0, Some(0));
    machine.wait();
    let key = std::fs::read_to_string(machine.home.state.join("device-key.pub")).unwrap();
    let key = key.trim();
    let (code, told) = verified(&machine, key, |text| text);
    assert!(code == Some(0) && told.starts_with("The log contains all of its"), "{told}");
    let cut = |text: String| {
        let count = text.lines().count();
        text.split_inclusive('\n').take(count - 1).collect()
    };
    let (code, told) = verified(&machine, key, cut);
    assert!(code == Some(1) && told.contains("it ends after"), "{told}");
    // A log that another program rewrote is internally consistent.
    let other = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let audit = ironcurtain_audit::Audit::open(other.path(), |_| ()).unwrap();
        for _ in 0..links(&machine).len() {
            let entry = ironcurtain_audit::Entry::new(ironcurtain_audit::Event::Daemon, "forged");
            audit.record(entry).await.unwrap();
        }
    });
    let forged = std::fs::read_to_string(other.path().join("audit.jsonl")).unwrap();
    let (code, told) = verified(&machine, key, |_| forged.clone());
    assert!(code == Some(1) && told.contains("it does not match the recorded entry"), "{told}");
    let (code, told) = verified(&machine, &"A".repeat(43), |text| text);
    assert!(code == Some(1) && told.contains("no head that is signed with this key"), "{told}");
}
