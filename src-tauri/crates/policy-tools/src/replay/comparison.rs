//! The calls of a replay, sorted by how their decision changes.

use super::{Obstacle, Recorded, Replay};
use crate::Ruling;
use ironcurtain_policy::Decision;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The calls, sorted by how their decision changes.
#[derive(Debug, Default)]
pub struct ReplayComparison<'a> {
    /// Those that come out looser.
    pub looser: AlikeGroups<'a>,
    /// Those that come out stricter.
    pub stricter: AlikeGroups<'a>,
    /// The number of those that come out as they did.
    pub same: usize,
    /// Those that cannot be judged again, by the reason.
    pub left_out: BTreeMap<&'a Obstacle, Vec<&'a Recorded>>,
}

/// Calls with today's rulings on them; those that are alike together.
pub type AlikeGroups<'a> = BTreeMap<AlikeCalls<'a>, Vec<(&'a Recorded, &'a Ruling)>>;

/// The things in which calls are alike: the tool, and the rule that decided them then and now.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AlikeCalls<'a> {
    /// The server.
    pub server: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The decision and the rule on record.
    pub then: (Decision, &'a str),
    /// Those of today.
    pub now: (Decision, &'a str),
}

impl<'a> ReplayComparison<'a> {
    /// Sorts the calls of a replay.
    #[must_use]
    pub fn new(replay: &'a Replay) -> Self {
        let mut sorted = Self::default();
        for replayed in &replay.calls {
            let call = &replayed.call;
            let now = match &replayed.now {
                Ok(now) => now,
                Err(obstacle) => {
                    sorted.left_out.entry(obstacle).or_default().push(call);
                    continue;
                }
            };
            let groups = match now.decision.cmp(&call.then.decision) {
                Ordering::Less => &mut sorted.looser,
                Ordering::Greater => &mut sorted.stricter,
                Ordering::Equal => {
                    sorted.same += 1;
                    continue;
                }
            };
            let (then, now_by) = (decided(&call.then), decided(now));
            let alike = AlikeCalls { server: &call.server, tool: &call.tool, then, now: now_by };
            groups.entry(alike).or_default().push((call, now));
        }
        sorted
    }
}

fn decided(ruling: &Ruling) -> (Decision, &str) {
    (ruling.decision, &ruling.rule)
}

#[cfg(test)]
mod tests {
    use super::super::Replayed;
    use super::*;
    use serde_json::Map;

    fn ruling(decision: Decision, rule: &str) -> Ruling {
        Ruling { decision, rule: rule.to_owned(), reason: String::new() }
    }

    fn call(seq: u64, then: Decision, now: Result<Ruling, Obstacle>) -> Replayed {
        let call = Recorded {
            seq,
            time_ms: 0,
            session: String::new(),
            client: None,
            server: "server".to_owned(),
            tool: "tool".to_owned(),
            arguments: Map::new(),
            redacted: Vec::new(),
            paths: Vec::new(),
            granted: false,
            then: ruling(then, "old"),
        };
        Replayed { call, now }
    }

    #[test]
    fn calls_are_sorted_by_how_their_decision_changes_and_alike_ones_stand_together() {
        let gone = Obstacle::ServerGone("server".to_owned());
        let calls = vec![
            call(1, Decision::Escalate, Ok(ruling(Decision::Allow, "new"))),
            call(2, Decision::Allow, Ok(ruling(Decision::Deny, "new"))),
            call(3, Decision::Deny, Ok(ruling(Decision::Deny, "other"))),
            call(4, Decision::Escalate, Ok(ruling(Decision::Allow, "new"))),
            call(5, Decision::Escalate, Ok(ruling(Decision::Allow, "other"))),
            call(6, Decision::Allow, Err(gone.clone())),
        ];
        let replay = Replay { entries: 6, problem: None, calls };
        let sorted = ReplayComparison::new(&replay);
        let numbers = |groups: &AlikeGroups<'_>| -> Vec<Vec<u64>> {
            groups.values().map(|calls| calls.iter().map(|(call, _)| call.seq).collect()).collect()
        };
        assert_eq!(numbers(&sorted.looser), [vec![1, 4], vec![5]]);
        assert_eq!(numbers(&sorted.stricter), [[2]]);
        assert_eq!(sorted.same, 1);
        assert_eq!(sorted.left_out[&gone].iter().map(|call| call.seq).collect::<Vec<_>>(), [6]);
    }
}
