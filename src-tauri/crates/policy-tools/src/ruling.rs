//! Decisions without their calls, used to compare policies.

use ironcurtain_policy::{Decision, Denial, Explanation, Verdict};

/// A policy's decision on a call, with the rule and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Decision on the call.
    pub decision: Decision,
    /// Name of the deciding rule.
    pub rule: String,
    /// Reason that the rule gives.
    pub reason: String,
}

impl Ruling {
    /// Returns the ruling on a call that was either judged or denied during planning.
    #[must_use]
    pub fn from_judged(judged: &Result<Explanation, Denial>) -> Self {
        match judged {
            Ok(explanation) => Self::from(&explanation.verdict),
            Err(denial) => Self::from(denial),
        }
    }
}

impl From<&Verdict> for Ruling {
    fn from(verdict: &Verdict) -> Self {
        let by = match verdict {
            Verdict::Allow(permit) => permit.reason(),
            Verdict::Escalate(escalation) => &escalation.by,
            Verdict::Deny(denial) => return Self::from(denial),
        };
        Self { decision: verdict.decision(), rule: by.rule.to_string(), reason: by.reason.to_string() }
    }
}

impl From<&Denial> for Ruling {
    fn from(denial: &Denial) -> Self {
        let (rule, reason) = (denial.rule.to_string(), denial.reason.to_string());
        Self { decision: Decision::Deny, rule, reason }
    }
}
