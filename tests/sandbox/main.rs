//! The escape suite: all known ways out of a sandbox, each with a similar action that is permitted (its twin).
//!
//! - Only the host judges an attack, by files, sockets, processes and secrets. It never trusts a command's own verdict.
//! - A row passes if the attack leaves no trace, its twin works in the same sandbox, and the attack succeeds without a
//!   sandbox (or is known to fail there). A broken probe therefore cannot pass.
//! - All attacks run as an ordinary user. If root starts the suite, the suite restarts itself first as an ordinary
//!   user and then as root.

#![cfg(target_os = "linux")]
#![expect(dead_code, reason = "shares its modules with `escape-table.rs`")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

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

use ironcurtain_testkit::namespace::{is_inside, run_inside};
use ironcurtain_testkit::programs::is_root;
use launch::Executor;
use tools::{Copies, Tools};

/// Sandboxes that must contain every attack.
const EXECUTORS: [Executor; 3] = [Executor::HostRead, Executor::Roots, Executor::Asking];

macro_rules! groups {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*
    };
}

groups! { writing reading processes sockets kernel namespaces network proxied persistence load lifetime }

#[test]
fn documented_attack_counts_match_each_group() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/explanation/security.md"
    ))
    .unwrap();
    let table = page
        .split("| group | attempts |")
        .nth(1)
        .unwrap()
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let documented: Vec<usize> =
        table.map(|line| line.split('|').nth(2).unwrap().trim().parse().unwrap()).collect();
    let there: Vec<usize> = groups::ALL.iter().map(|group| group.rows.len()).collect();
    assert_eq!(documented, there);
    let sum: usize = there.iter().sum();
    assert!(
        page.contains(&format!("`tests/sandbox/` has {sum} escape attempts")),
        "there are {sum} escape attempts"
    );
}

fn holds(name: &str) {
    let group = groups::ALL.iter().find(|group| group.name == name).unwrap();
    let tools = Tools::find();
    let _turn = tools.turn();
    let is_inside = is_inside();
    if is_root() && !is_inside {
        let run = Copies::new().own_program().args(["--exact", name, "--nocapture"]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        let ran = said.contains("1 passed");
        assert!(
            run.status.success() && ran,
            "as an ordinary user: {said}\n{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
    if group.proxied && !is_inside {
        return run_inside(name, &["--net"]);
    }
    let _servers = group.proxied.then(|| proxied_network::start(&tools));
    let faults = run::faults(&tools, group, &EXECUTORS, !is_root());
    assert!(faults.is_empty(), "{} faults in {}:\n{}", faults.len(), group.name, faults.join("\n"));
}
