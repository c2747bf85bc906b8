//! Benchmarks IronCurtain and comparable programs in the same run and prints a Markdown table. Run it with `cargo
//! xtask bench`. With `--smoke`, each benchmark runs with the minimum number of repetitions.

#[path = "bench/load.rs"]
mod load;
#[path = "bench/parts.rs"]
mod parts;
#[path = "bench/relay.rs"]
mod relay;
#[path = "bench/trusted.rs"]
mod trusted;

use anyhow::{Context, bail, ensure};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Answer, AnswerSlot, Consent, Lifetime, Question, WithdrawalReason};
use ironcurtain_daemon::{DaemonOptions, start};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_testkit::measurements::{self, Row, Sample, table};
use ironcurtain_testkit::programs::{built, is_root};
use load::{BenchServer, BenchSetup, Repetitions};
use parts::BenchClient;
use serde_json::json;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use trusted::TrustedProcess;

/// Number of repetitions of each benchmark.
struct Rounds {
    /// Repetitions of the benchmarks whose calls are allowed.
    allowed_calls: Repetitions,
    /// Number of idle sessions.
    idle: usize,
    /// Number of answered questions.
    questions: usize,
    /// Number of grants to create and revoke.
    revoked_grant_memory: u64,
    /// Number of program starts.
    starts: usize,
    /// Repetitions of the benchmarks that use the reference server.
    reference_calls: Repetitions,
}

const MEASURED: Rounds = Rounds {
    allowed_calls: Repetitions {
        calls: 5000,
        pipelined: 20_000,
        calls_per_session: 500,
        sessions: 20,
        attempts: 3,
    },
    idle: 300,
    questions: 100,
    revoked_grant_memory: 200,
    starts: 50,
    reference_calls: Repetitions {
        calls: 500,
        pipelined: 4000,
        calls_per_session: 100,
        sessions: 20,
        attempts: 3,
    },
};
const SMOKE: Rounds = Rounds {
    allowed_calls: Repetitions { calls: 1, pipelined: 1, calls_per_session: 1, sessions: 2, attempts: 1 },
    idle: 1,
    questions: 1,
    revoked_grant_memory: 1,
    starts: 1,
    reference_calls: Repetitions { calls: 1, pipelined: 1, calls_per_session: 1, sessions: 2, attempts: 1 },
};

fn main() -> anyhow::Result<()> {
    if let Some(relayed) = relay::run_if_requested() {
        return relayed;
    }
    let words: Vec<String> = std::env::args().collect();
    let rounds = if words.iter().any(|word| word == "--smoke") { SMOKE } else { MEASURED };
    let reference = words.iter().skip_while(|word| *word != "--reference").nth(1).map(Path::new);
    let dir = tempfile::Builder::new().prefix("icbench").tempdir()?;
    let base = dir.path().canonicalize()?;
    let home = Home::under(&base.join("ic"), &base.join("person"));
    std::fs::create_dir_all(base.join("person/docs"))?;
    std::fs::write(base.join("person/docs/file.txt"), "hello\n")?;
    home.prepare()?;
    // Sets the highest limit so that no question is denied automatically.
    let unlimited_questions = json!({ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 });
    std::fs::write(home.config.join("config.json"), unlimited_questions.to_string())?;
    let person = Arc::new(AllowOnce::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let options = DaemonOptions { home: home.clone(), programs: built(), allow_root: is_root() };
    let daemon = runtime.block_on(start(options, person.clone()))?;

    let mut rows = vec![shim_start(rounds.starts)?];
    rows.extend(parts::sandbox_launch(&base, rounds.starts)?);
    let mut ours = start_shim_session(&base)?;
    let resident = measurements::resident_kib(ours.pid())?.context("the shim has exited")?;
    rows.push(Row::with_value("shim, resident", measurements::megabytes(resident), "<= 3 MB"));
    rows.extend(allowed_calls(&base.join("load"), &rounds)?);
    rows.push(calls_during_export(&base.join("export"), &rounds)?);
    if let Some(script) = reference {
        rows.extend(reference_server_rates(
            &base.join("reference"),
            BenchServer::Reference(script),
            &rounds.reference_calls,
        )?);
    }
    rows.push(approval(&base, rounds.questions, &person, &mut ours)?);
    let request = |request| runtime.block_on(daemon.request(request));
    rows.push(revocation(&base, rounds.questions, &person, &request, &mut ours)?);
    rows.push(revoked_grant_memory(&base, rounds.revoked_grant_memory, &person, &request, &mut ours)?);
    writeln!(std::io::stdout(), "{}", table(&rows))?;
    drop(ours);
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
    Ok(())
}

/// Measures allowed calls through the daemon, and the memory that idle sessions need.
fn allowed_calls(base: &Path, rounds: &Rounds) -> anyhow::Result<Vec<Row>> {
    let trusted = TrustedProcess::start(base, None)?;
    let setup = BenchSetup::new(base, &trusted, BenchServer::Embedded)?;
    let mut rows = setup.one_at_a_time(&rounds.allowed_calls)?;
    rows.push(setup.pipelined(&rounds.allowed_calls)?);
    rows.push(setup.many_sessions(&rounds.allowed_calls)?);
    rows.push(setup.idle(rounds.idle)?);
    Ok(rows)
}

/// Measures allowed calls during an audit log export to a collector that accepts connections but never answers.
fn calls_during_export(base: &Path, rounds: &Rounds) -> anyhow::Result<Row> {
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let config = json!({ "export": { "url": format!("http://{}", silent.local_addr()?) } });
    let without = TrustedProcess::start(&base.join("without"), None)?;
    let with = TrustedProcess::start_with(&base.join("with"), None, &config)?;
    let setups = [
        BenchSetup::new(&base.join("without"), &without, BenchServer::Embedded)?,
        BenchSetup::new(&base.join("with"), &with, BenchServer::Embedded)?,
    ];
    let [peer, ours] = load::compare_alternating(&setups, &rounds.allowed_calls)?;
    Ok(Row::compared("allowed call, collector never answers", ours, "no export", peer, "<= 1.1x"))
}

/// Measures call rates with the reference server, which takes longer per call than IronCurtain does.
fn reference_server_rates(
    base: &Path,
    server: BenchServer,
    repetitions: &Repetitions,
) -> anyhow::Result<Vec<Row>> {
    let trusted = TrustedProcess::start(base, server.entry())?;
    let setup = BenchSetup::new(base, &trusted, server)?;
    Ok(vec![setup.pipelined(repetitions)?, setup.many_sessions(repetitions)?])
}

/// Measures the time from the start of the shim to its exit, without opening a session.
fn shim_start(starts: usize) -> anyhow::Result<Row> {
    let program = built().join("ironcurtain-shim");
    let mut ours = Sample::default();
    let mut peer = Sample::default();
    for _ in 0..starts {
        ours.time(|| Command::new(&program).arg("--version").output())?;
        peer.time(|| Command::new("/bin/true").output())?;
    }
    Ok(Row::compared("shim, start and exit", ours, "`true`", peer, "<= 3 ms"))
}

/// Opens a session with the built-in filesystem server through the shim.
fn start_shim_session(base: &Path) -> anyhow::Result<BenchClient> {
    let mut shim = Command::new(built().join("ironcurtain-shim"));
    shim.args(["--server", "filesystem"]).env("IRONCURTAIN_HOME", base.join("ic"));
    BenchClient::begin(shim)
}

/// Measures the time from an approval to the call's result. Includes evaluating the policy, mounting, updating the
/// roots and recording.
fn approval(
    base: &Path,
    questions: usize,
    person: &AllowOnce,
    ours: &mut BenchClient,
) -> anyhow::Result<Row> {
    let path = json!({ "path": base.join("person/docs/file.txt") });
    let mut sample = Sample::default();
    for _ in 0..questions {
        ours.call("read_text_file", &path)?;
        let answered = person.take_answer_time().context("the question was not asked")?;
        sample.push(answered.elapsed());
    }
    Ok(Row::ours_only("approval to result", sample, "<= 15 ms"))
}

/// Measures the time from a revocation request until the access is proven to be removed.
fn revocation(
    base: &Path,
    questions: usize,
    person: &AllowOnce,
    request: &dyn Fn(Request) -> Reply,
    ours: &mut BenchClient,
) -> anyhow::Result<Row> {
    let path = json!({ "path": base.join("person/docs/file.txt") });
    let mut sample = Sample::default();
    for _ in 0..questions {
        sample.push(create_and_revoke(&path, person, request, ours)?);
    }
    Ok(Row::ours_only("revocation, proved", sample, "<= 100 ms"))
}

/// Measures how much memory each revoked grant leaves in use, after a warm-up with twice as many grants.
fn revoked_grant_memory(
    base: &Path,
    count: u64,
    person: &AllowOnce,
    request: &dyn Fn(Request) -> Reply,
    ours: &mut BenchClient,
) -> anyhow::Result<Row> {
    let path = json!({ "path": base.join("person/docs/file.txt") });
    let mut rounds = |count: u64| -> anyhow::Result<u64> {
        for _ in 0..count {
            create_and_revoke(&path, person, request, ours)?;
        }
        measurements::resident_kib(std::process::id())?.context("this process runs")
    };
    let before = rounds(count * 2)?;
    let after = rounds(count)?;
    let each = after.saturating_sub(before) * 1024 / count;
    let what = format!("{count} revoked grants, left in memory");
    Ok(Row::from_cells(&what, &format!("{each} bytes each"), "", "", "<= 256 bytes each"))
}

/// Makes a call that creates a grant, and revokes the grant. Returns the duration of the revocation.
fn create_and_revoke(
    path: &serde_json::Value,
    person: &AllowOnce,
    request: &dyn Fn(Request) -> Reply,
    ours: &mut BenchClient,
) -> anyhow::Result<std::time::Duration> {
    person.allow_next_for_an_hour();
    ours.call("read_text_file", path)?;
    let Reply::Grants(grants) = request(Request::Grants) else { bail!("failed to list the grants") };
    let grant = grants.first().context("nothing was granted")?.id.clone();
    let began = Instant::now();
    let reply = request(Request::Revoke { grant });
    ensure!(matches!(reply, Reply::Revoked { unstored: None, .. }), "{reply:?}");
    Ok(began.elapsed())
}

/// Simulated user who allows every question and records the time of each answer.
#[derive(Default)]
struct AllowOnce(Mutex<(Option<Instant>, bool)>);

impl AllowOnce {
    fn take_answer_time(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.take()
    }

    /// Allows the next question for an hour so that a grant is stored.
    fn allow_next_for_an_hour(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    }
}

impl Consent for AllowOnce {
    fn ask(&self, _: Question, slot: AnswerSlot) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lifetime = if std::mem::take(&mut state.1) { Lifetime::Hour } else { Lifetime::Once };
        state.0 = Some(Instant::now());
        slot.answer(Answer::Allow { offer: 0, lifetime });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}
}
