//! Verdicts of the judge.
//!
//! - Only the judge creates a [`Permit`]; it carries the reason and the grants it is based on.
//! - An [`Escalation`] lists every value that requires approval; approving exactly those values allows the call.

use crate::decision::STARTS_PROGRAMS;
use crate::{AllowedBy, Decision, Denial, Destination, ResolvedCall, Role, RuleReason};
use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::sync::Arc;

/// Decision on a call, with its terms.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Verdict {
    /// The call is allowed.
    Allow(Permit),
    /// The call requires the user's approval.
    Escalate(Escalation),
    /// The call is denied.
    Deny(Denial),
}

impl Verdict {
    /// Returns the decision without its terms.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow(_) => Decision::Allow,
            Self::Escalate(_) => Decision::Escalate,
            Self::Deny(_) => Decision::Deny,
        }
    }

    /// Returns the deciding rule, or the first rule that allows.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow(permit) => &permit.reason.rule,
            Self::Escalate(escalation) => &escalation.by.rule,
            Self::Deny(denial) => &denial.rule,
        }
    }
}

/// Permission for one call; contains the call as judged and as sent.
#[derive(Debug, PartialEq)]
#[must_use = "forwarding a call requires its permit"]
pub struct Permit {
    call: ResolvedCall,
    by: AllowedBy,
    reason: RuleReason,
    others: Vec<RuleReason>,
    grants: Vec<String>,
}

/// A call that requires the user's approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    /// Call as judged.
    pub call: ResolvedCall,
    /// First rule that asks.
    pub by: RuleReason,
    /// Values that require approval; never empty.
    pub values: Vec<PendingApproval>,
    /// Other rules that applied.
    pub others: Vec<RuleReason>,
}

/// A value that requires approval; approved when it is passed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    /// Role; `None` if the call itself requires approval.
    pub role: Option<Role>,
    /// Argument; empty if the call itself requires approval.
    pub argument: Arc<str>,
    /// Subject of the approval.
    pub subject: ApprovalSubject,
    /// Rule that asks.
    pub by: RuleReason,
}

/// Subject of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// A path.
    Path(CanonicalPath),
    /// A URL or a name.
    Text(Arc<str>),
    /// A role without a value in the call.
    Absent,
    /// The whole call, because its tool has no resources.
    Call,
}

impl Permit {
    pub(crate) fn new(
        call: ResolvedCall,
        (by, reason): (AllowedBy, RuleReason),
        others: Vec<RuleReason>,
        grants: Vec<String>,
    ) -> Self {
        Self { call, by, reason, others, grants }
    }

    /// Returns the permitted call.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// Returns the ground on which the call is allowed.
    #[must_use]
    pub fn allowed_by(&self) -> AllowedBy {
        self.by
    }

    /// Returns the first reason that allows it.
    #[must_use]
    pub fn reason(&self) -> &RuleReason {
        &self.reason
    }

    /// Returns the other rules that applied.
    #[must_use]
    pub fn others(&self) -> &[RuleReason] {
        &self.others
    }

    /// Returns the grants it is based on, without duplicates.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }
}

impl PendingApproval {
    /// Returns `true` if `approved` is about the same subject, role and argument.
    #[must_use]
    pub fn is_answered_by(&self, approved: &Self) -> bool {
        self.role == approved.role && self.argument == approved.argument && self.subject == approved.subject
    }

    /// Returns `true` if it is about a program that a client would start, which requires approval every time.
    #[must_use]
    pub fn is_about_a_start(&self) -> bool {
        *self.by.rule == *STARTS_PROGRAMS
    }

    /// Returns the host and port of an address.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let (ApprovalSubject::Text(text), Some(role @ (Role::FetchUrl | Role::GitRemoteUrl))) =
            (&self.subject, self.role)
        else {
            return None;
        };
        let destination = Destination::parse(role, text);
        destination.host_and_port().map(|(host, port)| (host.to_owned(), port))
    }
}

impl fmt::Display for ApprovalSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
            Self::Absent => formatter.write_str("(not given)"),
            Self::Call => formatter.write_str("(the call)"),
        }
    }
}
