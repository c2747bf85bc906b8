//! Index of the rules that can apply to a tool.

use super::Rule;
use crate::{Role, RoleSet};
use std::collections::BTreeMap;

/// Positions of rules in ascending order, indexed by the server and tool that each rule names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Index {
    any: Vec<RuleEntry>,
    tool: BTreeMap<String, Vec<RuleEntry>>,
    server: BTreeMap<String, ServerIndex>,
}

/// Positions of the rules that name one server.
#[derive(Debug, Clone, PartialEq, Default)]
struct ServerIndex {
    any: Vec<RuleEntry>,
    tool: BTreeMap<String, Vec<RuleEntry>>,
}

impl ServerIndex {
    fn add(&mut self, tools: Option<&[String]>, entry: RuleEntry) {
        match tools {
            None => push(&mut self.any, entry),
            Some(tools) => push_each(&mut self.tool, tools, entry),
        }
    }
}

/// Position of a rule, with the judged roles that it applies to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RuleEntry {
    position: usize,
    roles: RoleSet,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (position, rule) in rules.iter().enumerate() {
            let entry = RuleEntry { position, roles: rule.judged_roles().collect() };
            match (&rule.condition.server, &rule.condition.tool) {
                (None, None) => push(&mut index.any, entry),
                (None, Some(tools)) => push_each(&mut index.tool, tools, entry),
                (Some(servers), tools) => servers.iter().for_each(|server| {
                    index.server.entry(server.clone()).or_default().add(tools.as_deref(), entry);
                }),
            }
        }
        index
    }

    /// Iterates over the positions of the rules that can apply to a tool, in ascending order.
    pub(super) fn positions_for(&self, server: &str, tool: &str) -> RulePositions<'_> {
        let server_index = self.server.get(server);
        let for_server_and_tool = server_index.and_then(|server_index| server_index.tool.get(tool));
        let server_index = server_index.map(|server_index| &server_index.any);
        let lists = [Some(&self.any), server_index, self.tool.get(tool), for_server_and_tool];
        RulePositions { lists: lists.map(|list| list.map(Vec::as_slice).unwrap_or_default()), role: None }
    }
}

/// Iterator that merges disjoint, ascending lists of positions without allocating.
#[derive(Debug, Clone, Copy)]
pub(super) struct RulePositions<'a> {
    lists: [&'a [RuleEntry]; 4],
    role: Option<Role>,
}

impl RulePositions<'_> {
    /// Restricts the iterator to rules that can apply to a role.
    pub(super) fn for_role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }
}

impl Iterator for RulePositions<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let heads = self.lists.iter_mut().filter(|list| !list.is_empty());
            let list = heads.min_by_key(|list| list.first().map(|entry| entry.position))?;
            let (first, rest) = list.split_first()?;
            *list = rest;
            if self.role.is_none_or(|role| first.roles.contains(role)) {
                return Some(first.position);
            }
        }
    }
}

fn push_each(entries: &mut BTreeMap<String, Vec<RuleEntry>>, names: &[String], entry: RuleEntry) {
    for name in names {
        push(entries.entry(name.clone()).or_default(), entry);
    }
}

/// Appends a position, unless it was just appended because the rule names the same server or tool twice.
fn push(entries: &mut Vec<RuleEntry>, entry: RuleEntry) {
    if entries.last().is_none_or(|last| last.position != entry.position) {
        entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use crate::{DynamicLists, Policy};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn names() -> impl Strategy<Value = Option<Vec<&'static str>>> {
        prop::option::of(prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3))
    }

    proptest! {
        #[test]
        fn index_agrees_with_a_scan_of_all_rules(rules in prop::collection::vec((names(), names()), 0..12)) {
            let stored: Vec<Value> = rules.iter().enumerate().map(|(position, (server, tool))| {
                let mut conditions = json!({});
                server.iter().for_each(|names| conditions["server"] = json!(names));
                tool.iter().for_each(|names| conditions["tool"] = json!(names));
                json!({ "name": position.to_string(), "if": conditions, "then": "allow" })
            }).collect();
            let file = json!({ "rules": stored }).to_string();
            let policy =
                Policy::from_json(&file, "p", &|_| Err("no".into()), &DynamicLists::default()).unwrap();
            for (server, tool) in [("a", "a"), ("a", "b"), ("c", "a"), ("z", "a"), ("a", "z"), ("z", "z")] {
                let names = |list: &Option<Vec<&str>>, name: &str| list.as_ref().is_none_or(|list| list.contains(&name));
                let looked: Vec<String> = rules.iter().enumerate()
                    .filter(|(_, (servers, tools))| names(servers, server) && names(tools, tool))
                    .map(|(position, _)| position.to_string()).collect();
                let found: Vec<String> = policy.rules_for(server, tool).map(|rule| rule.name().to_string()).collect();
                prop_assert_eq!(found, looked);
            }
        }
    }
}
