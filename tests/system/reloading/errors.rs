//! Edits that cannot be applied: they change nothing, are reported, and do not block the daemon.

use super::POLICY;
use super::edits::{rule, rules};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::machine::Machine;
use crate::world::eventually;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn invalid_file_changes_nothing_and_is_reported_until_fixed() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    world.changes_policy(|w| w.put_first(rule("quiet", json!({ "tool": ["heard"] }), "deny")));
    let before = world.status().policy;
    let good = world.read(POLICY);
    let bad = "{\n  \"rules\": [\n    { \"name\": \"wide\", \"then\": \"allow\",\n      \"if\": { \"tols\": [\"open\"] } }\n  ]\n}\n";
    world.replaces(POLICY, bad);
    let trouble = world.trouble();
    let named = format!("`{}`, line 4, rule `wide`, field `if.tols`", world.config(POLICY).display());
    assert!(trouble.starts_with("The last change of the policy is not in force: "), "{trouble}");
    assert!(trouble.contains(&named), "{trouble}");
    client.plain("heard").refused("DENIED: quiet (rule `quiet`)");
    client.plain("now").ok();
    assert_eq!(world.status().policy, before);
    // The report is about the most recent mistake.
    world.replaces(POLICY, "{");
    eventually("the other mistake is reported", TIMEOUT, || world.trouble().contains("EOF while parsing"));
    world.replaces(POLICY, &good);
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    assert_eq!(world.status().policy, before);
    client.plain("heard").refused("DENIED: quiet (rule `quiet`)");
}

#[test]
fn deleted_file_leaves_last_policy_in_force() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let directory = world.home.policy();
    let away = world.home.config.join("away");
    let before = world.status().policy;
    let gone = |path: &Path| format!("`{}` was removed; restore it", path.display());
    std::fs::rename(world.config(POLICY), world.config("saved")).unwrap();
    eventually("the problem is reported", TIMEOUT, || world.trouble().contains(&gone(&world.config(POLICY))));
    client.plain("heard").ok();
    std::fs::rename(world.config("saved"), world.config(POLICY)).unwrap();
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    assert_eq!(world.status().policy, before);
    // Deletes the file and its directory, twice. The daemon notices when the file is restored.
    for quiet in [true, false] {
        std::fs::rename(&directory, &away).unwrap();
        eventually("the problem is reported", TIMEOUT, || {
            world.trouble().contains(" was removed; restore it")
        });
        client.plain("now").ok();
        std::fs::create_dir(&directory).unwrap();
        for file in ["compiled-policy.json", "tool-annotations.json"] {
            std::fs::copy(away.join(file), directory.join(file)).unwrap();
        }
        std::fs::remove_dir_all(&away).unwrap();
        eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
        if quiet {
            world.changes_policy(|w| w.put_first(rule("quiet", json!({ "tool": ["heard"] }), "deny")));
            client.plain("heard").refused("quiet");
        } else {
            world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
            client.plain("heard").ok();
        }
    }
}

#[test]
fn fifo_instead_of_file_is_reported_and_does_not_block() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    std::fs::remove_file(world.config(POLICY)).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, world.config(POLICY), mode).unwrap();
    let is = format!("failed to read `{}`: it is a named pipe", world.config(POLICY).display());
    eventually("the problem is reported", TIMEOUT, || {
        world.status().troubles.iter().any(|text| text.contains(&is))
    });
    // The policy in effect does not change, not even for new sessions.
    client.plain("heard").ok();
    world.connect("hostile").plain("heard").ok();
    world.replaces(
        POLICY,
        &json!({ "rules": [rule("quiet", json!({ "tool": ["heard"] }), "deny")] }).to_string(),
    );
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    client.plain("heard").refused("DENIED: quiet (rule `quiet`)");
}

#[test]
fn unwritable_audit_log_blocks_policy_changes() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let mut client = machine.connect();
    client.plain("heard").ok();
    let status = |machine: &Machine| String::from_utf8(machine.command(&["status"]).stdout).unwrap();
    let log = machine.home.audit().join("audit.jsonl");
    machine.limit_file_size(Some(std::fs::metadata(&log).unwrap().len()));
    let file = machine.home.config.join(POLICY);
    let mut policy: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    rules(&mut policy).insert(0, rule("quiet", json!({ "tool": ["heard"] }), "deny"));
    std::fs::write(&file, policy.to_string()).unwrap();
    let waits = "The last change of the policy is not in force: the audit log cannot be written";
    eventually("the problem is reported", TIMEOUT, || status(&machine).contains(waits));
    client.plain("heard").refused("DENIED: the audit log cannot be written");
    machine.limit_file_size(None);
    // The policy still in effect judges the first recorded call.
    client.plain("now").ok();
    eventually("the change is in force", TIMEOUT, || status(&machine).contains(" is protecting "));
    client.plain("heard").refused("quiet");
    client.plain("now").ok();
    machine.verify();
}
