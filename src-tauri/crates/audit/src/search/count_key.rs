//! Properties by which decisions are grouped for counting.

use crate::{Entry, Event, Status};

/// Kind of a counted entry. The number is stored in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Allowed = 1,
    Asked = 2,
    Denied = 3,
}

/// Properties by which decisions are grouped for counting.
pub(super) struct CountKey {
    /// Index of the period, where 0 is the earliest.
    pub(super) period: u64,
    pub(super) kind: Kind,
    /// Name of the deciding rule; `None` for a question.
    pub(super) rule: Option<String>,
    /// `true` if the user was asked about the call.
    pub(super) was_asked: bool,
}

impl Kind {
    pub(super) fn from_entry(entry: &Entry) -> Option<Self> {
        let status = entry.policy_decision.as_ref().map(|decision| &decision.status);
        match (entry.event, status) {
            (Event::Question, _) => Some(Self::Asked),
            (Event::Decision | Event::Network, Some(Status::Allow)) => Some(Self::Allowed),
            (Event::Decision | Event::Network, Some(Status::Deny)) => Some(Self::Denied),
            (_, _) => None,
        }
    }

    pub(super) fn from_code(code: i64) -> Option<Self> {
        [Self::Allowed, Self::Asked, Self::Denied].into_iter().find(|kind| *kind as i64 == code)
    }

    /// Returns `true` for a decision and `false` for a question.
    pub(super) fn is_final(self) -> bool {
        self != Self::Asked
    }
}
