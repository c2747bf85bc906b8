//! Reasons and further effects that a question shows in addition to the call's effects. Pure.

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Escalation, ResolvedCall, Role, RuleReason};
use ironcurtain_sandbox::autostart;
use ironcurtain_visible as visible;

/// Returns the reason for the worst role among the values that need approval. If several roles are equally bad, returns
/// the first reason.
pub(super) fn worst_reason(escalation: &Escalation) -> &RuleReason {
    let worst = escalation.values.iter().rev().max_by_key(|asked| asked.role.and_then(Role::verb));
    worst.map_or(&escalation.by, |asked| &asked.by)
}

/// Returns the reasons other than `worst` that are not defined by a policy rule.
pub(super) fn other_reasons(escalation: &Escalation, worst: &RuleReason) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let reasons = escalation.values.iter().map(|asked| &asked.by);
    for reason in reasons.filter(|by| is_structural(&by.rule) && by.reason != worst.reason) {
        let sentence = visible::line(&reason.reason);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Returns `true` if the rule is built into the judge rather than part of the policy.
fn is_structural(rule: &str) -> bool {
    rule.starts_with("structural-")
}

/// Warning about writing an autostart file.
pub(super) const AUTOSTART_WARNING: &str = "Your own programs run it, outside the sandbox.";

/// Returns `true` if the call writes an autostart file.
pub(super) fn writes_autostart_file(call: &ResolvedCall, home: &CanonicalPath) -> bool {
    let runs =
        |path: &CanonicalPath| autostart::autostart_condition(path.as_str(), Some(home.as_str())).is_some();
    call.paths().any(|(role, _, path)| role == Role::WritePath && runs(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::{Annotations, ApprovalSubject, Escalation, Fact, PendingApproval, RuleReason};
    use serde_json::json;
    use std::sync::Arc;

    fn path(text: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(text).unwrap()
    }

    fn call(role: &str, at: &str) -> ResolvedCall {
        let tools = json!([{ "toolName": "t", "serverName": "s", "args": { "path": [role] } }]);
        let text = json!({ "servers": { "s": { "tools": tools } } }).to_string();
        let annotations = Annotations::from_json(&text, "tools").unwrap();
        let arguments = Arc::new(json!({ "path": at }).as_object().unwrap().clone());
        annotations.plan("s", "t", &arguments).unwrap().resolve([Fact::Path(path(at))]).unwrap()
    }

    #[test]
    fn an_autostart_file_is_detected_only_when_written() {
        let of = |role: &str, at: &str| writes_autostart_file(&call(role, at), &path("/home/u"));
        for name in [".git/hooks/pre-commit", ".vscode/tasks.json", "package.json"] {
            let at = format!("/home/u/app/{name}");
            assert!(of("write-path", &at) && !of("read-path", &at), "{name}");
        }
        assert!(!of("write-path", "/home/u/app/notes.md"));
    }

    #[test]
    fn the_worst_reason_is_used_and_the_judges_own_are_all_listed() {
        let asked = |role: Role, rule: &'static str, reason: &'static str| PendingApproval {
            role: Some(role),
            argument: "a".into(),
            subject: ApprovalSubject::Absent,
            by: RuleReason::new(rule, reason),
        };
        let values: Vec<PendingApproval> = [
            asked(Role::ReadPath, "ask-before-reading", "It is outside."),
            asked(Role::GitRemoteUrl, "structural-domain-escalate", "It is no host of the server."),
            asked(Role::GitRemoteUrl, "ask-before-connecting", "It needs your word."),
            asked(Role::WritePath, "structural-other", "It starts programs."),
        ]
        .into_iter()
        .collect();
        let escalation = Escalation {
            call: call("read-path", "/a"),
            by: values[0].by.clone(),
            values,
            others: Vec::new(),
        };
        let worst = worst_reason(&escalation);
        assert_eq!(&*worst.reason, "It is no host of the server.");
        assert_eq!(other_reasons(&escalation, worst), ["It starts programs."]);
    }
}
