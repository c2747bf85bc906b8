//! Subject of a decision: one value or the call as a whole.

use crate::{ApprovalSubject, PendingApproval, ResolvedCall, ResolvedValue, Resource, Role, RuleReason};
use std::fmt;
use std::sync::Arc;

/// A value and the role in which it is judged, or the call as a whole.
#[derive(Clone, Copy)]
pub(super) struct JudgedValue<'a> {
    /// Role of the value, or `None` if the call is judged as a whole.
    pub(super) role: Option<Role>,
    /// Judged value. `None` for the call as a whole, and for a role without a value.
    pub(super) given: Option<&'a ResolvedValue>,
}

impl JudgedValue<'_> {
    /// The call as a whole. Used for tools without resources.
    pub(super) const WHOLE_CALL: Self = Self { role: None, given: None };

    /// Creates the approval that the value requires.
    pub(super) fn pending(&self, call: &ResolvedCall, by: RuleReason) -> PendingApproval {
        PendingApproval { role: self.role, argument: self.argument(call), subject: self.subject(), by }
    }

    pub(super) fn argument(&self, call: &ResolvedCall) -> Arc<str> {
        self.given.map(|given| call.argument(given).clone()).unwrap_or_default()
    }

    pub(super) fn subject(&self) -> ApprovalSubject {
        match self.given.map(|given| &given.value) {
            None if self.role.is_none() => ApprovalSubject::Call,
            None => ApprovalSubject::Absent,
            Some(Resource::Path(path)) => ApprovalSubject::Path(path.clone()),
            Some(Resource::Url(destination)) => ApprovalSubject::Text(destination.text().into()),
            Some(Resource::Text(text)) => ApprovalSubject::Text(text.clone()),
            Some(Resource::NonString) => ApprovalSubject::Text(Arc::default()),
        }
    }
}

impl fmt::Display for JudgedValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(formatter, "`{}` as `{role}`", self.subject()),
            None => formatter.write_str("this tool"),
        }
    }
}
