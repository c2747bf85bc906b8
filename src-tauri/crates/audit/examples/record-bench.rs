//! Benchmark of the audit log. Prints the rows of a Markdown table.
//!
//! - Bytes per allowed call: one decision and its outcome, as a session writes them.
//! - Entries per second from a single task that waits for each entry, and from 64 tasks whose entries are written
//!   together.
//! - Search time over 1,000,000 entries in files of the default size, with an up-to-date index. Each of several filters
//!   runs five times, and its fastest run counts. The slowest filter is reported. Also the time to build the index.
//! - `record-bench --smoke` computes every row from a few entries.
#![expect(clippy::expect_used, reason = "a benchmark fails by panicking")]

use ironcurtain_audit::{
    Audit, CallResult, DecidedBy, Entry, Event, Filter, LogOptions, PolicyDecision, Status, search,
};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let entries: u64 = if smoke { 2_000 } else { 1_000_000 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let rows = runtime.block_on(measure(entries));
    std::io::stdout().write_all(rows.concat().as_bytes()).expect("standard output");
}

async fn measure(entries: u64) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let alone = one_by_one(&dir.path().join("alone"), entries / 20).await;
    let log = dir.path().join("log");
    let (together, bytes) = together(&log, entries).await;
    let begun = Instant::now();
    find(&log, &Filter::default());
    let indexing = begun.elapsed();
    let slowest = filters().iter().map(|filter| quickest(&log, filter)).max().unwrap_or_default();
    vec![
        row("recorded allowed call, decision and outcome", &format!("{bytes} bytes"), "", "<= 600 bytes"),
        row("recorded entries, one task", &format!("{alone:.0} a second"), "", ""),
        row("recorded entries, 64 tasks, written together", &format!("{together:.0} a second"), "", ""),
        row(
            &format!("search over {entries} entries, slowest of {} filters", filters().len()),
            &format!("{:.1} ms", slowest.as_secs_f64() * 1e3),
            &format!("making the index: {:.1} s", indexing.as_secs_f64()),
            "<= 100 ms",
        ),
    ]
}

fn row(what: &str, ours: &str, beside: &str, goal: &str) -> String {
    format!("| {what} | {ours} | {beside} |  | {goal} |\n")
}

fn audit(dir: &Path) -> Audit {
    std::fs::create_dir_all(dir).expect("a directory");
    Audit::open_with(LogOptions::new(dir), |_| ()).expect("a log")
}

/// Creates the decision on a call. `n` varies the call's path.
fn decision(n: u64) -> Entry {
    let path = format!("/home/person/projects/application/src/module{}/file{}.rs", n % 40, n % 5_000);
    let mut entry = Entry::new(Event::Decision, "");
    entry.request_id = Some(n.to_string());
    (entry.session, entry.client) =
        (Some(format!("4mc6fg3r2g6pe{:03}", n / 1_000)), Some("claude".to_owned()));
    entry.server_name = Some("filesystem".to_owned());
    entry.tool_name = Some(if n.is_multiple_of(997) { "move_file" } else { "read_text_file" }.to_owned());
    let content = serde_json::json!({ "path": path });
    entry.arguments = content.as_object().cloned();
    entry.paths = vec![path];
    entry.policy_decision =
        Some(PolicyDecision::allow(DecidedBy::Grant, "grant", "grant `nt5u8qj8t4m4kzgr`"));
    entry.policy_hash = Some(ironcurtain_audit::hash_of(b"policy"));
    (entry.grant_id, entry.sandboxed) = (Some("nt5u8qj8t4m4kzgr".to_owned()), Some(true));
    entry
}

async fn call(audit: &Audit, n: u64) {
    let number = audit.record(decision(n)).await.expect("on record");
    audit.record(Entry::outcome_of(number, CallResult::Ok, 3)).await.expect("on record");
}

async fn one_by_one(dir: &Path, entries: u64) -> f64 {
    let (audit, begun) = (audit(dir), Instant::now());
    for n in 0..entries / 2 {
        call(&audit, n).await;
    }
    entries as f64 / begun.elapsed().as_secs_f64()
}

/// Returns entries per second and bytes per call while 64 tasks record concurrently.
async fn together(dir: &Path, entries: u64) -> (f64, u64) {
    let (audit, begun) = (audit(dir), Instant::now());
    let tasks = (0..64_u64).map(|task| {
        let audit = audit.clone();
        tokio::spawn(async move {
            for n in (task..entries / 2).step_by(64) {
                call(&audit, n).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a task");
    }
    let rate = entries as f64 / begun.elapsed().as_secs_f64();
    drop(audit);
    let files = std::fs::read_dir(dir).expect("a directory").filter_map(Result::ok);
    let log = files.filter(|file| file.file_name().to_string_lossy().ends_with(".jsonl"));
    let bytes: u64 = log.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    (rate, bytes / (entries / 2))
}

fn filters() -> Vec<Filter> {
    let any = Filter::default;
    vec![
        any(),
        Filter { server: Some("filesystem".into()), ..any() },
        Filter { tool: Some("move_file".into()), server: Some("filesystem".into()), ..any() },
        Filter { session: Some("4mc6fg3r2g6pe000".into()), ..any() },
        Filter { path: Some("/home/person/projects/application/src/module7".into()), ..any() },
        Filter { text: Some("file4321".into()), ..any() },
        Filter { text: Some("nothing like it".into()), ..any() },
        Filter { decision: Some(Status::Deny), ..any() },
        Filter { until_ms: Some(1), ..any() },
    ]
}

fn find(log: &Path, filter: &Filter) -> usize {
    search(log, filter, 50).expect("a log").len()
}

fn quickest(log: &Path, filter: &Filter) -> Duration {
    let timed = || {
        let begun = Instant::now();
        find(log, filter);
        begun.elapsed()
    };
    (0..5).map(|_| timed()).min().unwrap_or_default()
}
