//! The verdicts of the judge.
//!
//! - Only the judge makes a [`Permit`]; it carries why, and which grants it rests on.
//! - An [`Escalation`] names every value that needs a person's word: approving exactly those lets the call through.

use crate::decision::STARTS_PROGRAMS;
use crate::{AllowedBy, Decision, Denial, Destination, ResolvedCall, Role, RuleReason};
use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::sync::Arc;

/// The judge's answer.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Verdict {
    /// The call may happen.
    Allow(Permit),
    /// A person must say.
    Escalate(Escalation),
    /// The call does not happen.
    Deny(Denial),
}

impl Verdict {
    /// The decision without its terms.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow(_) => Decision::Allow,
            Self::Escalate(_) => Decision::Escalate,
            Self::Deny(_) => Decision::Deny,
        }
    }

    /// The rule that decides, or the first of those that allow.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow(permit) => &permit.reason.rule,
            Self::Escalate(escalation) => &escalation.by.rule,
            Self::Deny(denial) => &denial.rule,
        }
    }
}

/// The permission for one call, which it holds as it was judged and as it is sent.
#[derive(Debug, PartialEq)]
#[must_use = "a permit is what forwarding a call takes"]
pub struct Permit {
    call: ResolvedCall,
    by: AllowedBy,
    reason: RuleReason,
    others: Vec<RuleReason>,
    grants: Vec<String>,
}

/// A call that a person must decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    /// The call as it was judged.
    pub call: ResolvedCall,
    /// The first rule that asks.
    pub by: RuleReason,
    /// Every value that needs the person's word. Never empty.
    pub values: Vec<PendingApproval>,
    /// Every rule that spoke besides those that ask.
    pub others: Vec<RuleReason>,
}

/// One thing that needs a person's word, and was given it when passed back as approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    /// In which role; nothing when the call itself is asked about.
    pub role: Option<Role>,
    /// The argument it came in; empty when the call itself is asked about.
    pub argument: Arc<str>,
    /// The thing that is asked about.
    pub subject: ApprovalSubject,
    /// The rule that asks.
    pub by: RuleReason,
}

/// A thing that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// A path.
    Path(CanonicalPath),
    /// A URL or a name.
    Text(Arc<str>),
    /// A role of the tool for which the call gives no value.
    Absent,
    /// The call as a whole: its tool names no resource.
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

    /// The call that may happen.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// The ground on which the call is allowed.
    #[must_use]
    pub fn allowed_by(&self) -> AllowedBy {
        self.by
    }

    /// The first rule that allows it.
    #[must_use]
    pub fn reason(&self) -> &RuleReason {
        &self.reason
    }

    /// Every other rule that spoke.
    #[must_use]
    pub fn others(&self) -> &[RuleReason] {
        &self.others
    }

    /// The grants it rests on, each once.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }
}

impl PendingApproval {
    /// Returns `true` if `approved` is a yes to this: the same thing in the same role and argument.
    #[must_use]
    pub fn is_answered_by(&self, approved: &Self) -> bool {
        self.role == approved.role && self.argument == approved.argument && self.subject == approved.subject
    }

    /// Returns `true` if it asks about a program that a client is told to start, which is asked about every time.
    #[must_use]
    pub fn is_about_a_start(&self) -> bool {
        *self.by.rule == *STARTS_PROGRAMS
    }

    /// The host and the port it leads to, when it is an address.
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
