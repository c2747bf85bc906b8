//! Benchmarks the judge on twenty calls from a coding session. Prints the rows of a Markdown table.
//!
//! - Measures four durations for each policy: `judge` alone with canonical paths; a `Resolver` that resolves every path
//!   on disk, then `judge`; `plan`, `resolve` and `judge` with canonical paths; and the same with every path resolved
//!   on disk. The duration of `judge` alone includes copying the call.
//! - Policies: the shipped policy plus rules for the other servers, generated policies of 10 and 1,000 rules that each
//!   name a server and a tool, and the existing system's coding policy if it is next to the checkout or at
//!   `IRONCURTAIN_PEER`.
//! - Each duration is that of the fastest of many short batches, to exclude interference from other processes. The
//!   duration includes dropping the created values.
//! - `judge-bench --smoke` measures every duration with a single batch.
//! - `judge-bench FIGURE POLICY ROUNDS` (the first two are indices from 0, in the order of the table) repeats the
//!   calls ROUNDS times and prints nothing. Use it with tools that count instructions (`valgrind --tool=callgrind`),
//!   allocations (`valgrind`) or system calls (`strace -c`), because load on the machine does not affect the counts.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement ends when its files are missing"
)]

#[path = "judge-bench/mix.rs"]
mod mix;
#[path = "judge-bench/world.rs"]
mod world;

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{ResolvedCall, judge};
use mix::Call;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};
use world::World;

/// Number of times that one batch repeats all calls. A batch is shorter than a scheduler time slice.
const BATCH: u32 = 20;
const BATCHES: usize = 2_000;

fn main() {
    let disk = world::Disk::new();
    let calls = mix::calls(&disk.base);
    let mut worlds = vec![world::shipped(&disk), world::generated(&disk, 10), world::generated(&disk, 1_000)];
    worlds.extend(world::existing(&disk));
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| -> usize { text.parse().expect("`ROUNDS` should be a number") };
    match wanted.as_slice() {
        [] => print(&measure(&worlds, &calls, BATCHES), calls.len()),
        [smoke] if smoke == "--smoke" => print(&measure(&worlds, &calls, 1), calls.len()),
        [figure, world, rounds] => {
            let work = Work::new(&worlds[number(world)], &calls);
            (0..number(rounds)).for_each(|_| work.once(Figure::ALL[number(figure)]));
        }
        _ => unreachable!("judge-bench takes nothing, `--smoke`, or FIGURE POLICY ROUNDS"),
    }
}

/// Part of a call's processing to measure.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    /// `judge` alone, with the paths already resolved.
    Judge,
    /// Resolving the paths on disk, then `judge`.
    Found,
    /// `plan`, `resolve` and `judge`, with the paths assumed to be canonical.
    Spelled,
    /// `plan`, `resolve` and `judge`, resolving the paths on disk as the trusted process does.
    Located,
}

impl Figure {
    const ALL: [Self; 4] = [Self::Judge, Self::Found, Self::Spelled, Self::Located];

    fn name(self) -> &'static str {
        match self {
            Self::Judge => "judge",
            Self::Found => "paths from disk, judge",
            Self::Spelled => "plan, resolve, judge",
            Self::Located => "plan, paths from disk, resolve, judge",
        }
    }

    fn goal(self) -> &'static str {
        match self {
            Self::Judge => "<= 10 us",
            Self::Found => "<= 20 us",
            Self::Spelled | Self::Located => "",
        }
    }
}

/// All calls, planned and resolved in one world.
struct Work<'a> {
    world: &'a World,
    calls: &'a [Call],
    resolved: Vec<ResolvedCall>,
    /// Paths in each call, in the order of the calls.
    paths: Vec<Vec<String>>,
}

impl<'a> Work<'a> {
    fn new(world: &'a World, calls: &'a [Call]) -> Self {
        let resolved: Vec<ResolvedCall> =
            calls.iter().map(|call| world.understand(call, &World::spelled)).collect();
        let paths = calls.iter().map(|call| world.paths(call)).collect();
        Self { world, calls, resolved, paths }
    }

    /// Processes every call once.
    fn once(&self, figure: Figure) {
        match figure {
            Figure::Judge => self.resolved.iter().for_each(|call| self.judge(call)),
            Figure::Found => {
                for (call, paths) in self.resolved.iter().zip(&self.paths) {
                    paths.iter().for_each(|path| drop(black_box(self.world.located(black_box(path)))));
                    self.judge(call);
                }
            }
            Figure::Spelled => self.whole_way(&World::spelled),
            Figure::Located => self.whole_way(&World::located),
        }
    }

    fn whole_way(&self, find: &dyn Fn(&World, &str) -> CanonicalPath) {
        self.calls.iter().for_each(|call| self.judge(&self.world.understand(black_box(call), find)));
    }

    fn judge(&self, call: &ResolvedCall) {
        drop(black_box(judge(&self.world.policy, &self.world.context(), black_box(call).clone())));
    }
}

/// Row of the printed table: the measured part, the world, the duration and its limit.
struct Row {
    figure: Figure,
    world: String,
    took: Duration,
}

impl Row {
    fn in_words(&self, calls: usize) -> String {
        let (mix, each) = (micros(self.took), micros(self.took) / calls as f64);
        let (what, world, goal) = (self.figure.name(), &self.world, self.figure.goal());
        format!("| {what}, {world} | {mix:.2} us for {calls} calls, {each:.3} us each |  |  | {goal} |")
    }
}

fn measure(worlds: &[World], calls: &[Call], batches: usize) -> Vec<Row> {
    let figures = |world| {
        let work = Work::new(world, calls);
        Figure::ALL.map(|figure| {
            let took = time(batches, || work.once(figure));
            Row { figure, world: world.name.clone(), took }
        })
    };
    worlds.iter().flat_map(figures).collect()
}

/// Returns the duration of the fastest of `batches` batches.
fn time(batches: usize, work: impl Fn()) -> Duration {
    let batch = || {
        let start = Instant::now();
        (0..BATCH).for_each(|_| work());
        start.elapsed()
    };
    (0..batches).map(|_| batch()).min().unwrap_or_default() / BATCH
}

fn print(rows: &[Row], calls: usize) {
    let mut out = std::io::stdout();
    for row in rows.iter().map(|row| row.in_words(calls)).chain(growth(rows)) {
        writeln!(out, "{row}").expect("standard output should be writable");
    }
}

/// Compares the durations for 10 and 1,000 rules that name a server and a tool. Returns `None` if either duration was
/// not measured.
fn growth(rows: &[Row]) -> Option<String> {
    let of = |count: &str| rows.iter().find(|row| row.figure == Figure::Judge && row.world.ends_with(count));
    let (few, many) = (of("(10 rules)")?.took, of("(1000 rules)")?.took);
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    let (few, many) = (micros(few), micros(many));
    Some(format!("| judge, 1000 rules | {many:.2} us | 10 rules: {few:.2} us | {ratio:.1}x | <= 3x |"))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
