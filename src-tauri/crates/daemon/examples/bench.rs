//! Figures of the whole system, each beside its peer in the same run, as a table in Markdown. Run by `cargo xtask bench`;
//! with `--smoke`, every figure is computed once.

#[path = "bench/parts.rs"]
mod parts;

use anyhow::{Context, bail, ensure};
use ironcurtain_daemon::consent::{Answer, Consent, Lifetime, Question, Slot, Withdrawn};
use ironcurtain_daemon::{DaemonOptions, Home, start};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_testkit::figures::{self, Row, Sample, table};
use ironcurtain_testkit::programs::{built, is_root};
use parts::Conversation;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The number of times that everything is done.
struct Rounds {
    /// Calls per latency row.
    calls: usize,
    /// Questions answered.
    questions: usize,
    /// Programs started.
    starts: usize,
}

const MEASURED: Rounds = Rounds { calls: 5000, questions: 100, starts: 50 };
const SMOKE: Rounds = Rounds { calls: 1, questions: 1, starts: 1 };

fn main() -> anyhow::Result<()> {
    let rounds = if std::env::args().any(|word| word == "--smoke") { SMOKE } else { MEASURED };
    let dir = tempfile::Builder::new().prefix("icbench").tempdir()?;
    let base = dir.path().canonicalize()?;
    let home = Home::under(&base.join("ic"), &base.join("person"));
    std::fs::create_dir_all(base.join("person/docs"))?;
    std::fs::write(base.join("person/docs/file.txt"), "hello\n")?;
    home.prepare()?;
    let person = Arc::new(YesOnce::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let options = DaemonOptions { home: home.clone(), programs: built(), allow_root: is_root() };
    let daemon = runtime.block_on(start(options, person.clone()))?;

    let mut rows = vec![shim_start(rounds.starts)?];
    rows.extend(parts::sandbox_launch(&base, rounds.starts)?);
    let mut ours = through_us(&base)?;
    let resident = figures::resident_kib(ours.pid())?.context("the shim has ended")?;
    rows.push(Row::plain("shim, resident", figures::megabytes(resident), "<= 3 MB"));
    rows.extend(latency(&base, rounds.calls, &mut ours)?);
    rows.push(approval(&base, rounds.questions, &person, &mut ours)?);
    let request = |request| runtime.block_on(daemon.request(request));
    rows.push(revocation(&base, rounds.questions, &person, &request, &mut ours)?);
    writeln!(std::io::stdout(), "{}", table(&rows))?;
    drop(ours);
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
    Ok(())
}

/// From starting the shim to its last word, without a session.
fn shim_start(starts: usize) -> anyhow::Result<Row> {
    let program = built().join("ironcurtain-shim");
    let mut ours = Sample::default();
    let mut peer = Sample::default();
    for _ in 0..starts {
        ours.time(|| Command::new(&program).arg("--version").output())?;
        peer.time(|| Command::new("/bin/true").output())?;
    }
    Ok(Row::beside("shim, start and exit", ours, "`true`", peer, "<= 3 ms"))
}

/// A session through the shim with the embedded server.
fn through_us(base: &Path) -> anyhow::Result<Conversation> {
    let mut shim = Command::new(built().join("ironcurtain-shim"));
    shim.args(["--server", "filesystem"]).env("IRONCURTAIN_HOME", base.join("ic"));
    Conversation::begin(shim)
}

/// An allowed call of a small file, through everything and to the same server direct.
fn latency(base: &Path, calls: usize, ours: &mut Conversation) -> anyhow::Result<Vec<Row>> {
    let direct_dir = base.join("direct");
    std::fs::create_dir_all(&direct_dir)?;
    std::fs::write(direct_dir.join("note.txt"), "hello\n")?;
    let mut server = Command::new(built().join("ironcurtain-filesystem"));
    server.arg(&direct_dir);
    let mut direct = Conversation::begin(server)?;
    ours.call("write_file", &json!({ "path": "note.txt", "content": "hello\n" }))?;
    let (mut with, mut without) = (Sample::default(), Sample::default());
    let direct_path = json!({ "path": direct_dir.join("note.txt") });
    for warm in [true, false] {
        for _ in 0..calls {
            let (w, d) = (
                timed(|| ours.call("read_text_file", &json!({ "path": "note.txt" })))?,
                timed(|| direct.call("read_text_file", &direct_path))?,
            );
            if !warm {
                with.push(w);
                without.push(d);
            }
        }
    }
    let added = with.less(&without);
    Ok(vec![
        Row::beside("allowed call, round trip", with, "server direct", without, ""),
        Row::added("allowed call, added", &added, "p50 <= 100 us, p99 <= 1 ms"),
    ])
}

/// From the person's yes to the client's result: judged again, mounted, told, understood, on record, called.
fn approval(base: &Path, questions: usize, person: &YesOnce, ours: &mut Conversation) -> anyhow::Result<Row> {
    let path = json!({ "path": base.join("person/docs/file.txt") });
    let mut sample = Sample::default();
    for _ in 0..questions {
        ours.call("read_text_file", &path)?;
        let answered = person.answered().context("the question was not asked")?;
        sample.push(answered.elapsed());
    }
    Ok(Row::alone("approval to result", sample, "<= 15 ms"))
}

/// From asking to take a grant back to the proof that it is gone.
fn revocation(
    base: &Path,
    questions: usize,
    person: &YesOnce,
    request: &dyn Fn(Request) -> Reply,
    ours: &mut Conversation,
) -> anyhow::Result<Row> {
    let path = json!({ "path": base.join("person/docs/file.txt") });
    let mut sample = Sample::default();
    for _ in 0..questions {
        person.for_the_session();
        ours.call("read_text_file", &path)?;
        let Reply::Grants(grants) = request(Request::Grants) else { bail!("the grants are not told") };
        let grant = grants.first().context("nothing was granted")?.id.clone();
        let began = Instant::now();
        let reply = request(Request::Revoke { grant });
        ensure!(matches!(reply, Reply::Revoked { .. }), "{reply:?}");
        sample.push(began.elapsed());
    }
    Ok(Row::alone("revocation, proved", sample, "<= 100 ms"))
}

fn timed<T>(what: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<std::time::Duration> {
    let began = Instant::now();
    what()?;
    Ok(began.elapsed())
}

/// Says yes to everything, and remembers when.
#[derive(Default)]
struct YesOnce(Mutex<(Option<Instant>, bool)>);

impl YesOnce {
    fn answered(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.take()
    }

    /// The next yes is for the session.
    fn for_the_session(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    }
}

impl Consent for YesOnce {
    fn ask(&self, _: Question, slot: Slot) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lifetime = if std::mem::take(&mut state.1) { Lifetime::Session } else { Lifetime::Once };
        state.0 = Some(Instant::now());
        slot.answer(Answer::Allow { offer: 0, lifetime });
    }

    fn withdraw(&self, _: &str, _: Withdrawn) {}
}
