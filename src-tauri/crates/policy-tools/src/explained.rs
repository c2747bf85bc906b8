//! Explains a verdict in words: which rule or grant decided each value, and why earlier rules did not apply.

use ironcurtain_policy::{Decision, ExplanationStep, Mismatch, SettledBy};

/// Returns a step's decision. A host outside the allowed hosts requires approval, unless a rule denies the call.
#[must_use]
pub fn decision_of(step: &ExplanationStep) -> Decision {
    let settled = match &step.settled_by {
        SettledBy::SessionFolder | SettledBy::Grant(_) | SettledBy::Confined => Decision::Allow,
        SettledBy::Rule { then, .. } => *then,
        SettledBy::Unannotated => Decision::Escalate,
        SettledBy::NoRule if step.gated => Decision::Escalate,
        SettledBy::NoRule => Decision::Deny,
    };
    if step.gated { settled.max(Decision::Escalate) } else { settled }
}

/// Returns `true` if the server's allowed hosts rather than a rule decided a step.
#[must_use]
pub fn is_by_gate(step: &ExplanationStep) -> bool {
    let by_rule = matches!(&step.settled_by, SettledBy::Rule { then, .. } if *then != Decision::Allow);
    step.gated && !by_rule
}

/// Describes the value that a step is about.
#[must_use]
pub fn about(step: &ExplanationStep) -> String {
    match (step.role, &*step.argument) {
        (None, _) => "the call as a whole".to_owned(),
        (Some(role), "") => format!("{role}: {}", step.subject),
        (Some(role), argument) => format!("{role} in `{argument}`: {}", step.subject),
    }
}

/// Describes the reason for a step's decision.
#[must_use]
pub fn reason_of(step: &ExplanationStep) -> String {
    const OUTSIDE: &str = "it is not one of this server's allowed hosts";
    match &step.settled_by {
        SettledBy::SessionFolder => "it is inside the session sandbox".to_owned(),
        SettledBy::Grant(id) => format!("by the grant `{id}`"),
        SettledBy::Rule { name, .. } if is_by_gate(step) => {
            format!("{OUTSIDE}, although the rule `{name}` allows it")
        }
        SettledBy::Rule { name, reason, .. } if step.gated => {
            format!("by the rule `{name}`: {reason}; and {OUTSIDE}")
        }
        SettledBy::Rule { name, reason, .. } => format!("by the rule `{name}`: {reason}"),
        SettledBy::Confined => {
            "the server has no network and can access only its own folders and granted paths".to_owned()
        }
        SettledBy::Unannotated => {
            "this tool is not annotated, and its server's entry says to ask (`unannotated`)".to_owned()
        }
        SettledBy::NoRule if step.gated => format!("{OUTSIDE}, and no rule covers it"),
        SettledBy::NoRule => "no rule covers it".to_owned(),
    }
}

/// Describes why a rule does not cover a value.
#[must_use]
pub fn missed(miss: Mismatch) -> &'static str {
    match miss {
        Mismatch::OtherRoles => "it does not apply to this role",
        Mismatch::NotWithin => "the path is not in its folder",
        Mismatch::NotInDomains => "a value of this role is not at one of its hosts",
        Mismatch::NotListed => "a value is not on its list",
        Mismatch::InDoubt => "it might not cover the value, and in doubt the stricter rule decides",
        Mismatch::NoResource => "its conditions require a resource, and the call names none",
        Mismatch::MayReach => "the call names a resource, or its server can reach more than its own sandbox",
    }
}
