//! Verdicts of the judge.
//!
//! - Only the judge creates a [`Permit`], which records the reason and the grants that it relies on.
//! - An [`Escalation`] lists every value that requires approval. Approving exactly those values allows the call.

use crate::decision::AUTOSTART_FILE;
use crate::decision::MANAGED_PREFIX;
use crate::{AllowedBy, Decision, Denial, Destination, ResolvedCall, Role, RuleReason};
use ironcurtain_paths::CanonicalPath;
use std::fmt;
use std::sync::Arc;

/// Decision on a call, with the details that belong to each kind of decision.
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
    /// Returns the decision without its details.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow(_) => Decision::Allow,
            Self::Escalate(_) => Decision::Escalate,
            Self::Deny(_) => Decision::Deny,
        }
    }

    /// Returns the name of the rule that decided, or of the first rule that allows the call.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow(permit) => &permit.reason.rule,
            Self::Escalate(escalation) => &escalation.by.rule,
            Self::Deny(denial) => &denial.rule,
        }
    }
}

/// Permission for one call. Contains the call as it was judged and will be sent.
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
    /// The call, as it was judged.
    pub call: ResolvedCall,
    /// First rule that requires approval. Rules of the user's organization take precedence.
    pub by: RuleReason,
    /// Values that require approval. Never empty.
    pub values: Vec<PendingApproval>,
    /// Other rules that applied to the call.
    pub others: Vec<RuleReason>,
}

/// Value that requires approval. Once the user has approved it, the caller passes it back to the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    /// Role of the value, or `None` if the call as a whole requires approval.
    pub role: Option<Role>,
    /// Name of the argument. Empty if the call as a whole requires approval.
    pub argument: Arc<str>,
    /// Resource or call that the user approves.
    pub subject: ApprovalSubject,
    /// Rule that requires approval.
    pub by: RuleReason,
}

/// Resource or call to which an approval applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// A file or folder.
    Path(CanonicalPath),
    /// A URL or a name.
    Text(Arc<str>),
    /// Role that requires approval although the call contains no value with that role.
    Absent,
    /// The call as a whole, because its tool names no resources.
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

    /// Returns the category of the reason the call is allowed.
    #[must_use]
    pub fn allowed_by(&self) -> AllowedBy {
        self.by
    }

    /// Returns the first reason the call is allowed.
    #[must_use]
    pub fn reason(&self) -> &RuleReason {
        &self.reason
    }

    /// Returns the other rules that applied to the call.
    #[must_use]
    pub fn others(&self) -> &[RuleReason] {
        &self.others
    }

    /// Returns the ids of the grants that the permit relies on, without duplicates.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }
}

impl Escalation {
    /// Returns `true` if an organization's rule requires the approval.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.by.rule.starts_with(MANAGED_PREFIX)
    }
}

impl PendingApproval {
    /// Returns `true` if `approved` has the same subject, role and argument.
    #[must_use]
    pub fn is_approved_by(&self, approved: &Self) -> bool {
        self.role == approved.role && self.argument == approved.argument && self.subject == approved.subject
    }

    /// Returns `true` if approval is required because of an autostart file. Such approval is required every time.
    #[must_use]
    pub fn is_for_autostart_file(&self) -> bool {
        *self.by.rule == *AUTOSTART_FILE
    }

    /// Returns the host and port of a URL or git remote, or `None` for any other subject.
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
