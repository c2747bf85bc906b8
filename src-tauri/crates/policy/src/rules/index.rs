//! Finds the rules that can speak about a tool without looking at all of them.

use super::Rule;
use std::collections::HashMap;

/// Places of rules, by what they name. Each list ascends.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Index {
    server_and_tool: HashMap<String, HashMap<String, Vec<usize>>>,
    server: HashMap<String, Vec<usize>>,
    tool: HashMap<String, Vec<usize>>,
    any: Vec<usize>,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            match (&rule.condition.server, &rule.condition.tool) {
                (None, None) => index.any.push(at),
                (Some(servers), None) => {
                    servers.iter().for_each(|server| push(&mut index.server, server, at))
                }
                (None, Some(tools)) => tools.iter().for_each(|tool| push(&mut index.tool, tool, at)),
                (Some(servers), Some(tools)) => {
                    for server in servers {
                        let of_server = index.server_and_tool.entry(server.clone()).or_default();
                        tools.iter().for_each(|tool| push(of_server, tool, at));
                    }
                }
            }
        }
        index
    }

    /// The places of the rules about a tool, ascending.
    pub(super) fn about(&self, server: &str, tool: &str) -> Places<'_> {
        let both = self.server_and_tool.get(server).and_then(|tools| tools.get(tool));
        let lists = [Some(&self.any), self.server.get(server), self.tool.get(tool), both];
        Places(lists.map(|list| list.map(Vec::as_slice).unwrap_or_default()))
    }
}

/// Ascending lists of places that have none in common, taken as one. Going through them costs no memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a>([&'a [usize]; 4]);

impl Iterator for Places<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let list =
            self.0.iter_mut().filter(|list| !list.is_empty()).min_by_key(|list| list.first().copied())?;
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first)
    }
}

/// A name given twice in one rule counts once.
fn push(places: &mut HashMap<String, Vec<usize>>, name: &str, at: usize) {
    let places = places.entry(name.to_owned()).or_default();
    if places.last() != Some(&at) {
        places.push(at);
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
        fn the_index_finds_what_a_look_at_every_rule_finds(rules in prop::collection::vec((names(), names()), 0..12)) {
            let stored: Vec<Value> = rules.iter().enumerate().map(|(at, (server, tool))| {
                let mut conditions = json!({});
                server.iter().for_each(|names| conditions["server"] = json!(names));
                tool.iter().for_each(|names| conditions["tool"] = json!(names));
                json!({ "name": at.to_string(), "if": conditions, "then": "allow" })
            }).collect();
            let file = json!({ "rules": stored }).to_string();
            let policy =
                Policy::from_json(&file, "p", &|_| Err(String::new()), &DynamicLists::default()).unwrap();
            for (server, tool) in [("a", "a"), ("a", "b"), ("c", "a"), ("z", "a"), ("a", "z"), ("z", "z")] {
                let names = |list: &Option<Vec<&str>>, name: &str| list.as_ref().is_none_or(|list| list.contains(&name));
                let looked: Vec<String> = rules.iter().enumerate()
                    .filter(|(_, (servers, tools))| names(servers, server) && names(tools, tool))
                    .map(|(at, _)| at.to_string()).collect();
                let found: Vec<String> = policy.about(server, tool).map(|rule| rule.name.clone()).collect();
                prop_assert_eq!(found, looked);
            }
        }
    }
}
