//! Edits to the user's files while the daemon runs.

use super::POLICY;
use crate::client::TIMEOUT;
use crate::world::{World, eventually};
use serde_json::{Value, json};
use std::path::PathBuf;

impl World {
    pub(super) fn config(&self, below: &str) -> PathBuf {
        self.home.config.join(below)
    }

    pub(super) fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.config(below)).unwrap()
    }

    /// Replaces a file as most editors do, by renaming a new file.
    pub(super) fn replaces(&self, below: &str, text: &str) {
        let beside = self.config(&format!("{below}.new"));
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.config(below)).unwrap();
    }

    pub(super) fn edit(&self, below: &str, change: impl FnOnce(&mut Value)) {
        let mut file = serde_json::from_str(&self.read(below)).unwrap();
        change(&mut file);
        self.replaces(below, &format!("{file:#}"));
    }

    pub(super) fn put_first(&self, rule: Value) {
        self.edit(POLICY, |policy| rules(policy).insert(0, rule));
    }

    /// Calls `change` and waits until a new policy is in effect.
    #[track_caller]
    pub(super) fn changes_policy(&self, change: impl FnOnce(&Self)) {
        let before = self.status();
        change(self);
        eventually("another policy is in force", TIMEOUT, || {
            let now = self.status();
            now.policy != before.policy && now.troubles.is_empty()
        });
    }

    /// Waits until the daemon reports a problem, and returns the message.
    #[track_caller]
    pub(super) fn trouble(&self) -> String {
        eventually("a problem is reported", TIMEOUT, || self.status().troubles.len() == 1);
        self.status().troubles.remove(0)
    }

    /// Returns the roots of the only session, without the session folder.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.sessions().remove(0).roots;
        roots.iter().skip(1).map(|root| PathBuf::from(&root.path)).collect()
    }
}

pub(super) fn rule(name: &str, condition: Value, then: &str) -> Value {
    json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name })
}

pub(super) fn rules(policy: &mut Value) -> &mut Vec<Value> {
    policy["rules"].as_array_mut().unwrap()
}

pub(super) fn annotate(file: &mut Value, name: &str, arguments: Value) {
    let tools = file["servers"]["hostile"]["tools"].as_array_mut().unwrap();
    tools.iter_mut().find(|tool| tool["toolName"] == name).unwrap()["args"] = arguments;
}
