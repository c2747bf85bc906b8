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
    pub(super) fn about(&self, server: &str, tool: &str) -> Vec<usize> {
        let mut places = self.any.clone();
        places.extend(self.server.get(server).into_iter().flatten());
        places.extend(self.tool.get(tool).into_iter().flatten());
        places
            .extend(self.server_and_tool.get(server).and_then(|tools| tools.get(tool)).into_iter().flatten());
        places.sort_unstable();
        places
    }
}

/// A name given twice in one rule counts once.
fn push(places: &mut HashMap<String, Vec<usize>>, name: &str, at: usize) {
    let places = places.entry(name.to_owned()).or_default();
    if places.last() != Some(&at) {
        places.push(at);
    }
}
