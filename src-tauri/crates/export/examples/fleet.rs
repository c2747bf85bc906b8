//! Simulates 10,000 desktops with one bundle server and one collector. Prints a Markdown table.
//!
//! - The desktops run the production client code: downloads, export, spool, pauses and backoff. Only the network, the
//!   clock and the random numbers are simulated so that the figures do not depend on the machine.
//! - Every desktop starts at the same moment, which is the worst case.
//! - Fails if a server gets more requests in a second than [`bounds::maximum`] allows, or if an entry is lost or
//!   arrives twice after removing duplicates by id.
//! - `fleet --smoke` simulates 200 desktops.
#![expect(clippy::expect_used, clippy::panic, reason = "a simulation fails by panicking")]

#[path = "fleet/bounds.rs"]
mod bounds;
#[path = "fleet/bundles.rs"]
mod bundles;
#[path = "fleet/collector.rs"]
mod collector;
#[path = "fleet/desktops.rs"]
mod desktops;
#[path = "fleet/long_polling.rs"]
mod long_polling;
#[path = "fleet/outage.rs"]
mod outage;
#[path = "fleet/random.rs"]
mod random;
#[path = "fleet/site.rs"]
mod site;
#[path = "fleet/spool.rs"]
mod spool;

use bounds::Load;
use bundles::{Organization, RULES};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spool::Spool;
use std::io::Write;
use std::sync::Arc;

/// Number of calls in the log, enough for each desktop.
const CALLS: usize = 150;

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let desktops = if smoke { 200 } else { 10_000 };
    // Each desktop keeps its log open.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("more open files");
    let (organization, spool) = (Organization::new(), Arc::new(Spool::new(CALLS)));
    let size = organization.bundle(1).len();
    let outage = simulated(outage::run(desktops, &organization, &spool));
    let long_polling = simulated(long_polling::run(desktops, &organization));
    let head = format!("| {desktops} desktops | bundle server | collector |\n| --- | --- | --- |\n");
    let about = format!("\nThe bundle has {RULES} rules and {size} bytes.\n");
    let text = [head, outage.concat(), long_polling.concat(), about].concat();
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
}

/// Runs a simulation on one thread with a clock that advances when all tasks are waiting.
fn simulated<T>(simulation: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(simulation)
}

fn row(what: &str, bundles: &str, collector: &str) -> String {
    format!("| {what} | {bundles} | {collector} |\n")
}

fn shown(load: Load) -> String {
    let Load { mean, busiest, bound } = load;
    let bound = if bound == u64::MAX { String::new() } else { format!(" (bound: {bound})") };
    format!("{mean:.1} a second, at most {busiest}{bound}")
}

/// Returns the busiest second of a load and its ratio to the mean of the usual load.
fn compared(load: Load, usual: Load) -> String {
    let Load { busiest, bound, .. } = load;
    format!("{busiest} ({:.1}x of the usual mean; bound: {bound})", busiest as f64 / usual.mean)
}
