//! Prints the escape suite as a table. Each row runs in the existing system's sandbox, in IronCurtain's sandbox, and
//! without a sandbox.
//!
//! `escape-table [--srt PATH] [GROUP...]`, where PATH is the `srt` program of `@anthropic-ai/sandbox-runtime`. This is
//! a comparison tool, not a test: the exit status only reports whether the tool ran.

#![cfg(target_os = "linux")]
#![expect(dead_code, reason = "shares its modules with `main.rs`")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a tool of the test suite that shares its modules"
)]

mod groups;
mod judge;
mod launch;
mod leftovers;
mod listeners;
mod proxied_network;
mod row;
mod run;
mod scene;
mod tools;
mod victim;

use std::{env, time::Instant};

use ironcurtain_testkit::programs::is_root;
use launch::Executor;
use row::{Bare, Group, Row};
use run::Verdict;
use tools::{Copies, Tools};

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if is_root() {
        assert!(Copies::new().own_program().args(args).status().unwrap().success(), "it did not run");
        return;
    }
    let (srt, names) = match args.as_slice() {
        [option, path, names @ ..] if option == "--srt" => (Some(Executor::Srt(path.clone())), names),
        names => (None, names),
    };
    let executors: Vec<Executor> =
        srt.into_iter().chain([Executor::HostRead, Executor::Roots, Executor::Asking]).collect();
    let tools = Tools::find();
    let mut failed = vec![0; executors.len()];
    for group in
        groups::ALL.iter().filter(|group| names.is_empty() || names.iter().any(|name| name == group.name))
    {
        // These rows need the suite's network, for which srt has no proxy.
        if group.proxied {
            continue;
        }
        for row in group.rows {
            line(&tools, group, row, &executors, &mut failed);
        }
    }
    println!("got through or did not work: {failed:?} of {executors:?}");
}

fn line(tools: &Tools, group: &Group, row: &Row, executors: &[Executor], failed: &mut [usize]) {
    let mut cells = Vec::new();
    let mut notes = Vec::new();
    let began = Instant::now();
    for (place, executor) in executors.iter().enumerate() {
        if !row.is_for(executor) {
            cells.push("-");
            continue;
        }
        let verdict = run::sandboxed(tools, group, row, executor);
        failed[place] += usize::from(verdict != Verdict::default());
        cells.push(match (&verdict.breaches[..], &verdict.twin_failed) {
            ([], None) => "held",
            ([], Some(_)) => "BROKE",
            _ => "THROUGH",
        });
        notes.extend(verdict.breaches);
        notes.extend(verdict.twin_failed.map(|said| format!("twin: {said}")));
    }
    let bare = match row.bare {
        Bare::Untried => "untried",
        Bare::Breaks | Bare::Holds | Bare::Differs if run::bare(tools, group, row).0.is_empty() => "nothing",
        Bare::Breaks | Bare::Holds | Bare::Differs => "through",
    };
    let time = began.elapsed().as_millis();
    println!(
        "{:12} {:58} {} | bare {bare} {time} ms {}",
        group.name,
        row.name,
        cells.join(" "),
        notes.join("; ").replace('\n', "|")
    );
}
