//! Measures calls through the daemon and compares them with calls sent directly to the server and calls through a
//! simple relay.

use crate::parts::BenchClient;
use crate::relay;
use crate::trusted::TrustedProcess;
use anyhow::Context;
use ironcurtain_testkit::measurements::{Row, Sample};
use ironcurtain_testkit::programs::built;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Number of in-flight calls in the benchmarks with pipelining.
const PIPELINED: usize = 64;

/// Number of repetitions of each benchmark that makes calls.
pub struct Repetitions {
    /// Number of sequential calls.
    pub calls: usize,
    /// Number of pipelined calls.
    pub pipelined: usize,
    /// Number of sequential calls per session in the benchmark with many sessions.
    pub calls_per_session: usize,
    /// Number of concurrent sessions.
    pub sessions: usize,
    /// Number of times that each rate is measured. The highest rate counts, because it was least affected by other
    /// processes.
    pub attempts: usize,
}

/// Route that calls take to the server.
#[derive(Clone, Copy)]
enum Route {
    Ours,
    Direct,
    Relayed,
}

/// Server that a benchmark calls.
#[derive(Debug, Clone, Copy)]
pub enum BenchServer<'a> {
    /// Filesystem server that is built into IronCurtain.
    Embedded,
    /// Reference server, with the path of its Node script.
    Reference(&'a Path),
}

impl BenchServer<'_> {
    /// Returns the server's entry for `mcp-servers.json`, or `None` for the built-in server.
    pub fn entry(self) -> Option<Value> {
        let Self::Reference(script) = self else { return None };
        let sandbox = json!({ "filesystem": { "allowRead": [packages(script)] } });
        Some(json!({ "command": "node", "args": [script], "fileWrites": "replace", "sandbox": sandbox }))
    }

    fn program(self) -> Command {
        match self {
            Self::Embedded => Command::new(built().join("ironcurtain-filesystem")),
            Self::Reference(script) => {
                let mut node = Command::new("node");
                node.arg(script);
                node
            }
        }
    }

    /// Returns the name of a benchmark in the table.
    fn row_name(self, what: &str) -> String {
        match self {
            Self::Embedded => what.to_owned(),
            Self::Reference(_) => format!("{what}, the reference server in Node"),
        }
    }
}

/// Measures sequential reads through two trusted processes, alternating between them.
pub fn compare_alternating(
    setups: &[BenchSetup<'_>; 2],
    repetitions: &Repetitions,
) -> anyhow::Result<[Sample; 2]> {
    let [one, other] = setups;
    let mut talks = [one.conversation(Route::Ours)?, other.conversation(Route::Ours)?];
    let mut samples = [Sample::default(), Sample::default()];
    for warm in [true, false] {
        for _ in 0..repetitions.calls {
            for (talk, sample) in talks.iter_mut().zip(&mut samples) {
                let began = Instant::now();
                talk.call()?;
                if !warm {
                    sample.push(began.elapsed());
                }
            }
        }
    }
    Ok(samples)
}

/// Returns the `node_modules` folder that contains a script.
fn packages(script: &Path) -> Option<&Path> {
    script.ancestors().find(|folder| folder.ends_with("node_modules"))
}

/// Environment for the benchmarks that make calls: a daemon, and a folder for the server.
pub struct BenchSetup<'a> {
    trusted: &'a TrustedProcess,
    server: BenchServer<'a>,
    folder: PathBuf,
}

impl<'a> BenchSetup<'a> {
    pub fn new(base: &Path, trusted: &'a TrustedProcess, server: BenchServer<'a>) -> anyhow::Result<Self> {
        let folder = base.join("direct");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("note.txt"), "hello\n")?;
        Ok(Self { trusted, server, folder })
    }

    fn conversation(&self, route: Route) -> anyhow::Result<RepeatedCall> {
        let mut server = self.server.program();
        server.arg(&self.folder);
        let (with, path) = match route {
            Route::Ours => {
                let mut ours = self.trusted.session()?;
                ours.call("write_file", &json!({ "path": "note.txt", "content": "hello\n" }))?;
                (ours, json!("note.txt"))
            }
            Route::Direct => (BenchClient::begin(server)?, json!(self.folder.join("note.txt"))),
            Route::Relayed => {
                (BenchClient::begin(relay::command_for(&server)?)?, json!(self.folder.join("note.txt")))
            }
        };
        Ok(RepeatedCall { with, arguments: json!({ "path": path }) })
    }

    /// Measures sequential reads of a small file, alternating between the daemon, the direct connection and the relay.
    pub fn one_at_a_time(&self, repetitions: &Repetitions) -> anyhow::Result<Vec<Row>> {
        let routes = [Route::Ours, Route::Direct, Route::Relayed];
        let mut talks =
            routes.into_iter().map(|route| self.conversation(route)).collect::<Result<Vec<_>, _>>()?;
        let mut samples = [Sample::default(), Sample::default(), Sample::default()];
        for warm in [true, false] {
            for _ in 0..repetitions.calls {
                for (talk, sample) in talks.iter_mut().zip(&mut samples) {
                    let began = Instant::now();
                    talk.call()?;
                    if !warm {
                        sample.push(began.elapsed());
                    }
                }
            }
        }
        let [ours, direct, relayed] = samples;
        let (added, limit) = (ours.minus(&direct), relayed.minus(&direct));
        let goal = "p50 <= 60 us, p99 <= 250 us";
        Ok(vec![
            Row::compared("allowed call, round trip", ours.clone(), "server direct", direct, ""),
            Row::compared("allowed call, round trip", ours, "bare relay", relayed, "<= 1.5x"),
            Row::added_compared("allowed call, added", added, "bare relay", limit, goal),
        ])
    }

    /// Measures the rate of pipelined calls in one session.
    pub fn pipelined(&self, repetitions: &Repetitions) -> anyhow::Result<Row> {
        self.rates(repetitions, "calls per second, 64 in flight in one session", |route| {
            let mut talk = self.conversation(route)?;
            talk.many(repetitions.pipelined.min(1000))?;
            let began = Instant::now();
            talk.many(repetitions.pipelined)?;
            Ok((repetitions.pipelined, began.elapsed()))
        })
    }

    /// Measures the rate of sequential calls in many concurrent sessions, each with its own server process.
    pub fn many_sessions(&self, repetitions: &Repetitions) -> anyhow::Result<Row> {
        self.rates(repetitions, &format!("calls per second, {} sessions", repetitions.sessions), |route| {
            let talks =
                (0..repetitions.sessions).map(|_| self.conversation(route)).collect::<Result<Vec<_>, _>>()?;
            let began = Instant::now();
            std::thread::scope(|scope| {
                let call = |mut talk: RepeatedCall| {
                    scope.spawn(move || {
                        (0..repetitions.calls_per_session).try_for_each(|_| talk.call()).map(|()| talk)
                    })
                };
                let callers: Vec<_> = talks.into_iter().map(call).collect();
                // Keeps all sessions open until every call is done, because closing a session slows down the others.
                let ended: Vec<_> = callers.into_iter().map(|caller| caller.join()).collect();
                let duration = began.elapsed();
                for ended in ended {
                    ended.map_err(|_| anyhow::anyhow!("a caller has panicked"))??;
                }
                Ok((repetitions.sessions * repetitions.calls_per_session, duration))
            })
        })
    }

    fn rates(
        &self,
        repetitions: &Repetitions,
        what: &str,
        measure: impl Fn(Route) -> anyhow::Result<(usize, Duration)>,
    ) -> anyhow::Result<Row> {
        let mut best = [0.0_f64; 3];
        for _ in 0..repetitions.attempts {
            for (route, best) in [Route::Ours, Route::Direct, Route::Relayed].into_iter().zip(&mut best) {
                let (calls, duration) = measure(route)?;
                let calls = u32::try_from(calls)?;
                *best = best.max(f64::from(calls) / duration.as_secs_f64());
            }
        }
        let [ours, direct, relayed] = best;
        let comparison =
            format!("server direct: {direct:.0}, bare relay: {relayed:.0} ({:.2}x)", relayed / direct);
        Ok(Row::from_cells(
            &self.server.row_name(what),
            &format!("{ours:.0}"),
            &comparison,
            &format!("{:.2}x", ours / direct),
            ">= 0.8x",
        ))
    }

    /// Measures the daemon's memory use for idle sessions.
    pub fn idle(&self, count: usize) -> anyhow::Result<Row> {
        let before = self.trusted.resident_kib()?;
        let sessions = (0..count).map(|_| self.trusted.session()).collect::<Result<Vec<_>, _>>()?;
        let after = self.trusted.resident_kib()?;
        let each = after.saturating_sub(before) / u64::try_from(count)?;
        drop(sessions);
        Ok(Row::from_cells(
            &format!("{count} idle sessions, in the trusted process"),
            &format!("{each} KiB each"),
            "",
            "",
            "<= 300 kB each",
        ))
    }
}

/// Connection to a server, and the arguments of the call to repeat.
struct RepeatedCall {
    with: BenchClient,
    arguments: Value,
}

impl RepeatedCall {
    fn call(&mut self) -> anyhow::Result<()> {
        self.with.call("read_text_file", &self.arguments)
    }

    /// Makes `count` calls, with at most [`PIPELINED`] in flight.
    fn many(&mut self, count: usize) -> anyhow::Result<()> {
        let mut left = count;
        for _ in 0..PIPELINED.min(count) {
            self.with.begin_call("read_text_file", &self.arguments)?;
            left -= 1;
        }
        for _ in 0..count {
            self.with.answered().context("a pipelined call failed")?;
            if left > 0 {
                self.with.begin_call("read_text_file", &self.arguments)?;
                left -= 1;
            }
        }
        Ok(())
    }
}
