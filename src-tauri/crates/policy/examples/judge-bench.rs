//! Times judging: a mix of twenty calls with canonical paths, by one policy. Prints one row of a markdown table.
//!
//! `judge-bench POLICY ANNOTATIONS [LISTS]`
#![expect(clippy::expect_used, reason = "a measurement ends when its files are missing")]

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    Annotations, Context, DynamicLists, Fact, Gates, Policy, ResolvedCall, Role, defaults, judge,
};
use serde_json::{Map, Value};
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

const CALLS: usize = 20;
const ROUNDS: u32 = 2_000;
const SAMPLES: usize = 15;
const PLACES: [&str; 4] = ["/home/ann/box/a.txt", "/home/ann/docs/b.txt", "/srv/data/c", "/usr/share/doc/d"];

fn main() {
    let mut files =
        std::env::args().skip(1).map(|path| std::fs::read_to_string(path).expect("a file to read"));
    let policy = files.next().unwrap_or_else(|| defaults::POLICY_JSON.to_owned());
    let annotations = files.next().unwrap_or_else(|| defaults::ANNOTATIONS_JSON.to_owned());
    let lists = files.next().map(|text| DynamicLists::from_json(&text, "lists").expect("lists"));
    let home = path("/home/ann");
    let within = |raw: &str| {
        CanonicalPath::assume_canonical(&raw.replacen('~', home.as_str(), 1)).map_err(|e| e.to_string())
    };
    let lists = lists.unwrap_or_default().missing_as_empty();
    let policy = Policy::from_json(&policy, "policy", &within, &lists).expect("a policy");
    let annotations = Annotations::from_json(&annotations, "annotations").expect("annotations");
    let calls = mix(&annotations);
    let (sandbox, protected) = (path("/home/ann/box"), defaults::protected(&home));
    let context = Context {
        sandbox: Some(&sandbox),
        sandbox_servers: &["filesystem".to_owned(), "git".to_owned()],
        protected: &protected,
        gates: &Gates::default(),
        grants: &[],
        approved: &[],
    };
    let judge_all =
        || calls.iter().for_each(|call| drop(black_box(judge(&policy, &context, black_box(call)))));
    let mut times: Vec<Duration> = (0..SAMPLES).map(|_| time(judge_all)).collect();
    times.sort();
    let median = times.get(SAMPLES / 2).copied().unwrap_or_default();
    let each = median.as_secs_f64() * 1e6 / f64::from(ROUNDS) / calls.len() as f64;
    let (rules, protected) = (policy.rules().len(), protected.len());
    writeln!(
        std::io::stdout(),
        "| judging, {} calls, {rules} rules, {protected} protected paths | {each:.3} us a call | {:.2} us the mix |",
        calls.len(),
        each * calls.len() as f64
    )
    .expect("a terminal to write to");
}

fn time(work: impl Fn()) -> Duration {
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    start.elapsed()
}

/// Calls of the annotated tools in turn, with a place for every path.
fn mix(annotations: &Annotations) -> Vec<ResolvedCall> {
    let tools: Vec<_> = annotations
        .servers()
        .flat_map(|server| annotations.tools(server).map(move |(name, tool)| (server, name, tool)))
        .filter(|(server, ..)| matches!(*server, "filesystem" | "git"))
        .collect();
    let call = |(at, (server, name, tool)): (usize, &(&str, &str, &ironcurtain_policy::ToolAnnotation))| {
        let place = PLACES.get(at % PLACES.len()).copied().unwrap_or_default();
        let paths =
            tool.arguments.iter().filter(|(_, roles)| roles.default.iter().any(|r| r.access().is_some()));
        let urls = tool.arguments.iter().filter(|(_, roles)| roles.default.contains(&Role::GitRemoteUrl));
        let arguments: Map<String, Value> = paths
            .map(|(name, _)| (name.clone(), place.into()))
            .chain(urls.map(|(name, _)| (name.clone(), "https://github.com/acme/app".into())))
            .collect();
        let plan = annotations.plan_recorded(server, name, &arguments).expect("a plan");
        let fact = |value: &ironcurtain_policy::PlannedValue| {
            if value.is_path() { Fact::Path(path(place)) } else { Fact::Plain }
        };
        let facts = plan.values().iter().map(fact).collect();
        plan.with_facts(facts).expect("a call")
    };
    tools.iter().cycle().take(CALLS).enumerate().map(call).collect()
}

fn path(text: &str) -> CanonicalPath {
    CanonicalPath::assume_canonical(text).expect("a canonical path")
}
