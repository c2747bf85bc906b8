//! Groups replayed calls by how their decision changed.

use super::{CannotReplay, RecordedCall, Replay};
use crate::Ruling;
use ironcurtain_policy::Decision;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Replayed calls, grouped by how their decision changed.
#[derive(Debug, Default)]
pub struct ReplayComparison<'a> {
    /// Calls that are now judged less strictly than recorded.
    pub looser: CallGroups<'a>,
    /// Calls that are now judged more strictly than recorded.
    pub stricter: CallGroups<'a>,
    /// Number of calls with an unchanged decision.
    pub same: usize,
    /// Calls that cannot be replayed, by reason.
    pub not_replayed: BTreeMap<&'a CannotReplay, Vec<&'a RecordedCall>>,
}

/// Calls with their current rulings, grouped by [`CallGroupKey`].
pub type CallGroups<'a> = BTreeMap<CallGroupKey<'a>, Vec<(&'a RecordedCall, &'a Ruling)>>;

/// Key for grouping similar calls: the tool, and the recorded and current decisions and rules.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallGroupKey<'a> {
    /// Name of the server.
    pub server: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// Recorded decision and the name of the rule that made it.
    pub then: (Decision, &'a str),
    /// Current decision and the name of the rule that makes it.
    pub now: (Decision, &'a str),
}

impl<'a> ReplayComparison<'a> {
    /// Groups a replay's calls.
    #[must_use]
    pub fn new(replay: &'a Replay) -> Self {
        let mut comparison = Self::default();
        for replayed in &replay.calls {
            let call = &replayed.call;
            let now = match &replayed.now {
                Ok(now) => now,
                Err(reason) => {
                    comparison.not_replayed.entry(reason).or_default().push(call);
                    continue;
                }
            };
            let groups = match now.decision.cmp(&call.then.decision) {
                Ordering::Less => &mut comparison.looser,
                Ordering::Greater => &mut comparison.stricter,
                Ordering::Equal => {
                    comparison.same += 1;
                    continue;
                }
            };
            let (then, now_by) = (decision_and_rule(&call.then), decision_and_rule(now));
            let key = CallGroupKey { server: &call.server, tool: &call.tool, then, now: now_by };
            groups.entry(key).or_default().push((call, now));
        }
        comparison
    }
}

fn decision_and_rule(ruling: &Ruling) -> (Decision, &str) {
    (ruling.decision, &ruling.rule)
}

#[cfg(test)]
mod tests {
    use super::super::ReplayedCall;
    use super::*;
    use serde_json::Map;

    fn ruling(decision: Decision, rule: &str) -> Ruling {
        Ruling { decision, rule: rule.to_owned(), reason: String::new() }
    }

    fn call(seq: u64, then: Decision, now: Result<Ruling, CannotReplay>) -> ReplayedCall {
        let call = RecordedCall {
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
        ReplayedCall { call, now }
    }

    #[test]
    fn calls_are_grouped_by_change_of_decision() {
        let removed = CannotReplay::ServerRemoved("server".to_owned());
        let calls = vec![
            call(1, Decision::Escalate, Ok(ruling(Decision::Allow, "new"))),
            call(2, Decision::Allow, Ok(ruling(Decision::Deny, "new"))),
            call(3, Decision::Deny, Ok(ruling(Decision::Deny, "other"))),
            call(4, Decision::Escalate, Ok(ruling(Decision::Allow, "new"))),
            call(5, Decision::Escalate, Ok(ruling(Decision::Allow, "other"))),
            call(6, Decision::Allow, Err(removed.clone())),
        ];
        let replay = Replay { entries: 6, problem: None, calls };
        let comparison = ReplayComparison::new(&replay);
        let numbers = |groups: &CallGroups<'_>| -> Vec<Vec<u64>> {
            groups.values().map(|calls| calls.iter().map(|(call, _)| call.seq).collect()).collect()
        };
        assert_eq!(numbers(&comparison.looser), [vec![1, 4], vec![5]]);
        assert_eq!(numbers(&comparison.stricter), [[2]]);
        assert_eq!(comparison.same, 1);
        assert_eq!(comparison.not_replayed[&removed].iter().map(|call| call.seq).collect::<Vec<_>>(), [6]);
    }
}
