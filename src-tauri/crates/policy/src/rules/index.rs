//! Index of the rules that can apply to a tool.

use super::Rule;
use crate::{Role, RoleSet};
use std::collections::BTreeMap;

/// Positions of rules in ascending order, indexed by the server and tool that each rule names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Index {
    any: Vec<RuleEntry>,
    tool: BTreeMap<String, Vec<RuleEntry>>,
    server: BTreeMap<String, OfServer>,
}

/// Positions of the rules that name one server.
#[derive(Debug, Clone, PartialEq, Default)]
struct OfServer {
    any: Vec<RuleEntry>,
    tool: BTreeMap<String, Vec<RuleEntry>>,
}

impl OfServer {
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
    at: usize,
    speaks: RoleSet,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            let place = RuleEntry { at, speaks: rule.judged_roles().collect() };
            match (&rule.condition.server, &rule.condition.tool) {
                (None, None) => push(&mut index.any, place),
                (None, Some(tools)) => push_each(&mut index.tool, tools, place),
                (Some(servers), tools) => servers.iter().for_each(|server| {
                    index.server.entry(server.clone()).or_default().add(tools.as_deref(), place);
                }),
            }
        }
        index
    }

    /// Iterates over the positions of the rules that can apply to a tool, in ascending order.
    pub(super) fn about(&self, server: &str, tool: &str) -> RuleNumbers<'_> {
        let of_server = self.server.get(server);
        let of_both = of_server.and_then(|of_server| of_server.tool.get(tool));
        let of_server = of_server.map(|of_server| &of_server.any);
        let lists = [Some(&self.any), of_server, self.tool.get(tool), of_both];
        RuleNumbers { lists: lists.map(|list| list.map(Vec::as_slice).unwrap_or_default()), role: None }
    }
}

/// Iterator that merges disjoint, ascending lists of positions without allocating.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleNumbers<'a> {
    lists: [&'a [RuleEntry]; 4],
    role: Option<Role>,
}

impl RuleNumbers<'_> {
    /// Restricts the iterator to rules that can apply to a role.
    pub(super) fn speaking(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }
}

impl Iterator for RuleNumbers<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let heads = self.lists.iter_mut().filter(|list| !list.is_empty());
            let list = heads.min_by_key(|list| list.first().map(|place| place.at))?;
            let (first, rest) = list.split_first()?;
            *list = rest;
            if self.role.is_none_or(|role| first.speaks.contains(role)) {
                return Some(first.at);
            }
        }
    }
}

fn push_each(places: &mut BTreeMap<String, Vec<RuleEntry>>, names: &[String], place: RuleEntry) {
    for name in names {
        push(places.entry(name.clone()).or_default(), place);
    }
}

/// Appends a position, unless it was just appended because the rule names the same server or tool twice.
fn push(places: &mut Vec<RuleEntry>, place: RuleEntry) {
    if places.last().is_none_or(|last| last.at != place.at) {
        places.push(place);
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
            let stored: Vec<Value> = rules.iter().enumerate().map(|(at, (server, tool))| {
                let mut conditions = json!({});
                server.iter().for_each(|names| conditions["server"] = json!(names));
                tool.iter().for_each(|names| conditions["tool"] = json!(names));
                json!({ "name": at.to_string(), "if": conditions, "then": "allow" })
            }).collect();
            let file = json!({ "rules": stored }).to_string();
            let policy =
                Policy::from_json(&file, "p", &|_| Err("no".into()), &DynamicLists::default()).unwrap();
            for (server, tool) in [("a", "a"), ("a", "b"), ("c", "a"), ("z", "a"), ("a", "z"), ("z", "z")] {
                let names = |list: &Option<Vec<&str>>, name: &str| list.as_ref().is_none_or(|list| list.contains(&name));
                let looked: Vec<String> = rules.iter().enumerate()
                    .filter(|(_, (servers, tools))| names(servers, server) && names(tools, tool))
                    .map(|(at, _)| at.to_string()).collect();
                let found: Vec<String> = policy.rules_for(server, tool).map(|rule| rule.name().to_string()).collect();
                prop_assert_eq!(found, looked);
            }
        }
    }
}
