//! Times judging a mix of twenty calls of a coding session. Prints rows of a table in Markdown.
//!
//! - Three figures for each policy: `judge` alone with paths that are canonical; the whole way of a call (`plan`,
//!   `with_facts`, `judge`) with such paths; and that way with every path found on disk by a `Resolver`.
//! - Policies: the one that ships with rules for the other servers beside it, generated ones of 10 and 1,000 rules that
//!   name server and tool, and the peer's coding policy where its files lie beside the checkout or `IRONCURTAIN_PEER`
//!   says where.
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

const ROUNDS: u32 = 100;
const SAMPLES: usize = 400;

fn main() {
    let disk = world::Disk::new();
    let calls = mix::calls(&disk.base);
    let mut worlds = vec![world::shipped(&disk), world::generated(&disk, 10), world::generated(&disk, 1_000)];
    worlds.extend(world::peer(&disk));
    let mut out = std::io::stdout();
    for world in &worlds {
        for (what, took, goal) in figures(world, &calls) {
            let name = &world.name;
            let (mix, each) = (micros(took), micros(took) / calls.len() as f64);
            writeln!(
                out,
                "| {what}, {name} | {mix:.2} us for {} calls, {each:.3} us each |  |  | {goal} |",
                calls.len()
            )
            .expect("a terminal to write to");
        }
    }
}

/// What is measured, how long the mix takes, and how long it may take.
fn figures(world: &World, calls: &[Call]) -> Vec<(&'static str, Duration, &'static str)> {
    let resolved: Vec<ResolvedCall> =
        calls.iter().map(|call| world.understand(call, &World::spelled)).collect();
    let context = world.context();
    let way = |find: &dyn Fn(&World, &str) -> ironcurtain_paths::CanonicalPath| {
        for call in calls {
            let call = world.understand(black_box(call), find);
            drop(black_box(judge(&world.policy, &context, &call)));
        }
    };
    vec![
        (
            "judge",
            time(|| {
                resolved
                    .iter()
                    .for_each(|call| drop(black_box(judge(&world.policy, &context, black_box(call)))))
            }),
            "<= 2 us",
        ),
        ("plan, with_facts, judge", time(|| way(&World::spelled)), ""),
        ("plan, paths from disk, with_facts, judge", time(|| way(&World::located)), "<= 10 us"),
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
