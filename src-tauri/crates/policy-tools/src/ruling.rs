//! A policy's answer to a call, without its terms: what one policy's answer is held against another's by.

use ironcurtain_policy::{Decision, Denial, Explanation, Verdict};

/// A policy's answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// Its reason.
    pub reason: String,
}

impl Ruling {
    /// The answer to a call that was judged, or was not even understood.
    #[must_use]
    pub fn of(judged: &Result<Explanation, Denial>) -> Self {
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
