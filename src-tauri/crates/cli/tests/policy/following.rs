//! Tests that the trusted process reloads changed files, and can be stopped while files are being replaced.

use crate::home::{Home, docs};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const IN_FORCE: &str = "ic/config/policy/compiled-policy.json";

fn policy_in_force(home: &Home) -> String {
    home.status().lines().last().unwrap().to_owned()
}

/// Replaces the policy file by renaming another file over it, as editors do.
fn put(home: &Home, policy: &Value) {
    std::fs::rename(home.file("new.json", policy), home.path(IN_FORCE)).unwrap();
}

#[test]
fn policy_that_is_not_a_regular_file_is_reported_and_later_changes_are_loaded() {
    let home = Home::new();
    home.file(IN_FORCE, &docs("allow", "~/docs"));
    let running = home.start();
    let before = policy_in_force(&home);
    std::fs::remove_file(home.path(IN_FORCE)).unwrap();
    let pipe = home.pipe(IN_FORCE);
    let trouble = format!("failed to read `{pipe}`: it is a named pipe, not a regular file");
    home.eventually("the trouble", || home.status().contains(&trouble));
    assert_eq!(policy_in_force(&home), before);
    put(&home, &docs("deny", "~/docs"));
    home.eventually("no trouble", || !home.status().contains("named pipe"));
    assert_ne!(policy_in_force(&home), before);
    running.stop();
}

#[test]
fn stopping_does_not_wait_for_policy_comparison() {
    let home = Home::new();
    let many = |then: &str| {
        let rule = |at: usize| {
            let within = json!({ "roles": ["read-path"], "within": format!("/data/{at}") });
            json!({ "name": format!("r{at}"), "if": { "paths": within }, "then": then })
        };
        json!({ "rules": (0..2500).map(rule).collect::<Vec<_>>() })
    };
    home.file(IN_FORCE, &many("allow"));
    let running = home.start();
    let before = policy_in_force(&home);
    put(&home, &many("deny"));
    home.eventually("the other policy", || policy_in_force(&home) != before);
    let began = Instant::now();
    running.stop();
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
}
