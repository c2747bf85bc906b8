//! Compares the reference "everything" server with and without the shim. The only differences are those that
//! `docs/explanation/architecture.md` lists.

mod peer;
mod script;

use crate::reference;
use crate::scripted_user::Next;
use crate::servers;
use crate::test_home::Prepared;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Reach};
use peer::Peer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Heading of the documentation section that lists the differences.
const HEADING: &str = "## What differs through the shim";

/// Number of calls that require approval because they contain an address.
const QUESTIONS: usize = 4;

#[test]
fn differences_through_shim_match_the_documentation() {
    let world = World::with(|prepared| {
        servers::install(prepared, "everything");
        allow_all(prepared);
        allow_sampling(prepared);
    });
    allow_questions(&world);
    let direct =
        std::thread::spawn(|| run(Command::new("node").arg(reference::script("server-everything")), true));
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    let through = run(shim.args(["--server", "everything"]).env("IRONCURTAIN_HOME", world.ours()), true);
    let direct = direct.join().unwrap();
    let different = different(&direct, &through);
    let documented_steps = documented_steps().into_iter().collect();
    let shown = format_difference(&different, &documented_steps, &direct, &through);
    assert_eq!(
        different, documented_steps,
        "the differences are not those of `docs/explanation/architecture.md`{shown}"
    );
    assert!(direct.len() - different.len() > 60, "{} of {} steps differ", different.len(), direct.len());
    assert!(world.audit().intact);
}

/// Allows the server to use the client's model without asking.
fn allow_sampling(prepared: &Prepared) {
    let file = prepared.home.config.join("mcp-servers.json");
    let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    servers["everything"]["sampling"] = json!("allow");
    std::fs::write(&file, servers.to_string()).unwrap();
}

/// Returns the names of the steps whose messages differ.
pub fn different(direct: &Steps, through: &Steps) -> BTreeSet<String> {
    let steps = direct.keys().chain(through.keys());
    steps.filter(|step| direct.get(*step) != through.get(*step)).cloned().collect()
}

/// Formats the unexpected differences between the steps.
pub fn format_difference(
    different: &BTreeSet<String>,
    expected: &BTreeSet<String>,
    direct: &Steps,
    through: &Steps,
) -> String {
    let steps = different.symmetric_difference(expected);
    let show = |step: &String| {
        format!("\n{step}\n  alone:   {}\n  through: {}", show(direct.get(step)), show(through.get(step)))
    };
    steps.map(show).collect()
}

/// Makes the user allow every question.
pub fn allow_questions(world: &World) {
    for _ in 0..QUESTIONS {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    }
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// Recorded messages of each step, by name.
pub type Steps = BTreeMap<String, Value>;

pub fn run(command: &mut Command, has_roots: bool) -> Steps {
    let mut peer = Peer::start(command);
    script::act(&mut peer, has_roots);
    peer.steps()
}

/// Writes a policy that allows all calls, so that the test compares results instead of refusals.
pub fn allow_all(prepared: &Prepared) {
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let rules =
        [rule("all", json!({ "server": ["everything"] }), "allow"), rule("ask", json!({}), "escalate")];
    let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
    std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
}

/// Returns the steps in the documentation's table. The first cell of each row is a step name.
pub fn documented_steps() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/explanation/architecture.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(HEADING).expect("the documentation has a list of differences");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('|'));
    let names = |row: &str| {
        row.split('`')
            .map(str::trim)
            .filter(|name| !name.is_empty() && *name != ",")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    rows.flat_map(|(row, reason)| {
        assert!(reason.trim().len() > 20, "a difference lacks a reason: {row}");
        names(row)
    })
    .collect()
}
