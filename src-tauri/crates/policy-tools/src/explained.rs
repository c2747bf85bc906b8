//! Explains a verdict in words: which rule or grant decided each value, and why earlier rules did not apply.

use ironcurtain_policy::{Decision, ExplanationStep, Mismatch, StepBasis};

/// Returns a step's decision. A host outside the allowed hosts requires approval, unless a rule denies the call.
#[must_use]
pub fn decision_of(step: &ExplanationStep) -> Decision {
    let decision = match &step.basis {
        StepBasis::SessionFolder | StepBasis::Grant(_) | StepBasis::Confined => Decision::Allow,
        StepBasis::Rule { then, .. } => *then,
        StepBasis::Unannotated => Decision::Escalate,
        StepBasis::NoRule if step.outside_allowed_hosts => Decision::Escalate,
        StepBasis::NoRule => Decision::Deny,
    };
    if step.outside_allowed_hosts { decision.max(Decision::Escalate) } else { decision }
}

/// Returns `true` if the server's allowed hosts rather than a rule decided a step.
#[must_use]
pub fn is_decided_by_host_list(step: &ExplanationStep) -> bool {
    let by_rule = matches!(&step.basis, StepBasis::Rule { then, .. } if *then != Decision::Allow);
    step.outside_allowed_hosts && !by_rule
}

/// Describes the value that a step is about.
#[must_use]
pub fn describe_value(step: &ExplanationStep) -> String {
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
    match &step.basis {
        StepBasis::SessionFolder => "it is inside the session sandbox".to_owned(),
        StepBasis::Grant(id) => format!("by the grant `{id}`"),
        StepBasis::Rule { name, .. } if is_decided_by_host_list(step) => {
            format!("{OUTSIDE}, although the rule `{name}` allows it")
        }
        StepBasis::Rule { name, reason, .. } if step.outside_allowed_hosts => {
            format!("by the rule `{name}`: {reason}; and {OUTSIDE}")
        }
        StepBasis::Rule { name, reason, .. } => format!("by the rule `{name}`: {reason}"),
        StepBasis::Confined => {
            "the server has no network and can access only its own folders and granted paths".to_owned()
        }
        StepBasis::Unannotated => {
            "this tool is not annotated, and its server's entry says to ask (`unannotated`)".to_owned()
        }
        StepBasis::NoRule if step.outside_allowed_hosts => format!("{OUTSIDE}, and no rule covers it"),
        StepBasis::NoRule => "no rule covers it".to_owned(),
    }
}

/// Describes why a rule does not cover a value.
#[must_use]
pub fn describe_mismatch(mismatch: Mismatch) -> &'static str {
    match mismatch {
        Mismatch::OtherRoles => "it does not apply to this role",
        Mismatch::NotWithin => "the path is not in its folder",
        Mismatch::NotInDomains => "a value of this role is not at one of its hosts",
        Mismatch::NotListed => "a value is not on its list",
        Mismatch::Uncertain => "it might not cover the value; when in doubt, the stricter rule applies",
        Mismatch::NoResource => "its conditions require a resource, and the call names none",
        Mismatch::MayReach => "the call names a resource, or its server can reach more than its own sandbox",
    }
}
