//! Times judging a mix of twenty calls of a coding session. Prints rows of a table in Markdown.
//!
//! - Three figures for each policy: `judge` alone with paths that are canonical; the whole way of a call (`plan`,
//!   `with_facts`, `judge`) with such paths; and that way with every path found on disk by a `Resolver`.
//! - Policies: the one that ships with rules for the other servers beside it, generated ones of 10 and 1,000 rules that
//!   name server and tool, and the coding policy of the existing system where its files lie beside the checkout or
//!   `IRONCURTAIN_PEER` says where.
//! - Dropping what was made is part of each figure.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement ends when its files are missing"
)]

#[path = "judge-bench/mix.rs"]
mod mix;
#[path = "judge-bench/world.rs"]
mod world;

use ironcurtain_policy::{ResolvedCall, judge};
use mix::Call;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};
use world::World;

const JUDGE: &str = "judge";
const ROUNDS: u32 = 100;
const SAMPLES: usize = 400;

fn main() {
    let disk = world::Disk::new();
    let calls = mix::calls(&disk.base);
    let mut worlds = vec![world::shipped(&disk), world::generated(&disk, 10), world::generated(&disk, 1_000)];
    worlds.extend(world::existing(&disk));
    let mut rows = Vec::new();
    for world in &worlds {
        rows.extend(figures(world, &calls));
    }
    let growth = growth(&rows);
    let mut out = std::io::stdout();
    for row in rows.iter().map(|row| row.in_words(calls.len())).chain(growth) {
        writeln!(out, "{row}").expect("a terminal to write to");
    }
}

/// One figure: what was measured, how long the mix took, and how long it may take.
struct Row {
    what: &'static str,
    world: String,
    took: Duration,
    goal: &'static str,
}

impl Row {
    fn in_words(&self, calls: usize) -> String {
        let (mix, each) = (micros(self.took), micros(self.took) / calls as f64);
        let Self { what, world, goal, .. } = self;
        format!("| {what}, {world} | {mix:.2} us for {calls} calls, {each:.3} us each |  |  | {goal} |")
    }
}

/// What a hundred times the rules cost calls that name a server and a tool.
fn growth(rows: &[Row]) -> Option<String> {
    let of = |count: &str| rows.iter().find(|row| row.what == JUDGE && row.world.ends_with(count));
    let (few, many) = (of("(10 rules)")?.took, of("(1000 rules)")?.took);
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    let (few, many) = (micros(few), micros(many));
    Some(format!("| judge, 1000 rules | {many:.2} us | 10 rules: {few:.2} us | {ratio:.1}x | <= 3x |"))
}

fn figures(world: &World, calls: &[Call]) -> Vec<Row> {
    let resolved: Vec<ResolvedCall> =
        calls.iter().map(|call| world.understand(call, &World::spelled)).collect();
    let context = world.context();
    let way = |find: &dyn Fn(&World, &str) -> ironcurtain_paths::CanonicalPath| {
        for call in calls {
            let call = world.understand(black_box(call), find);
            drop(black_box(judge(&world.policy, &context, &call)));
        }
    };
    let judged = || {
        for call in &resolved {
            drop(black_box(judge(&world.policy, &context, black_box(call))));
        }
    };
    let row = |what, took, goal| Row { what, world: world.name.clone(), took, goal };
    vec![
        row(JUDGE, time(judged), "<= 2 us"),
        row("plan, with_facts, judge", time(|| way(&World::spelled)), ""),
        row("plan, paths from disk, with_facts, judge", time(|| way(&World::located)), "<= 10 us"),
    ]
}

/// The quickest of many rounds, which what else runs on the machine has disturbed least.
fn time(work: impl Fn()) -> Duration {
    let sample = || {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| work());
        start.elapsed() / ROUNDS
    };
    (0..SAMPLES).map(|_| sample()).min().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
