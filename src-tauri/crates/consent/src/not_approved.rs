//! Reasons a call was not approved.

use super::Stop;
use ironcurtain_audit::{DecidedBy, EscalationResult};

/// Rule name in the audit log for calls that are denied because the agent is paused.
pub const PAUSED: &str = "paused";

/// Reason a call was not approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The user denied the call and left a note for the agent.
    #[error("the user denied it with this note: {0}")]
    DeniedWithNote(String),
    /// The user denied the call without a note.
    #[error("the user denied it")]
    Denied,
    /// The user could not be asked. Contains the reason.
    #[error("{0}")]
    Unavailable(String),
    /// The user closed the dialog without an answer.
    #[error("the question was closed without an answer")]
    Closed,
    /// The question's deadline passed.
    #[error("the user did not answer within {seconds} s")]
    TimedOut {
        /// Duration for which the question was open, in seconds.
        seconds: u64,
    },
    /// A stop (a lockdown, a paused session or a session-long denial) denied the call.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The user recently denied the same call, so it is denied without asking.
    #[error("{}; it is denied without asking for another {seconds} s", denied(.note.as_deref()))]
    StillDenied {
        /// Note that the user left with the denial, if any.
        note: Option<String>,
        /// Seconds until the same call prompts the user again.
        seconds: u64,
    },
    /// The session or client asked too many questions, so the call is denied without asking.
    #[error("too many questions: the user was asked {limit} times within a minute; try again in {seconds} s")]
    TooMany {
        /// Limit that was reached: questions per minute for the session or the client.
        limit: usize,
        /// Seconds until the client may ask again.
        seconds: u64,
    },
}

impl NotApproved {
    /// Returns `true` if the user answered the question with a denial.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Denied | Self::DeniedWithNote(_))
    }

    /// Returns the result that the audit log records for each call that was waiting for this answer.
    pub(super) fn audit_result(&self) -> EscalationResult {
        match self {
            Self::DeniedWithNote(_) | Self::Denied | Self::StillDenied { .. } => EscalationResult::Denied,
            Self::Unavailable(_) | Self::TooMany { .. } => EscalationResult::Unavailable,
            Self::Closed => EscalationResult::Closed,
            Self::TimedOut { .. } => EscalationResult::TimedOut,
            Self::Stopped(_) => EscalationResult::Stopped,
        }
    }

    /// Returns the audit log's decider and rule name for a call that is denied without asking the user.
    pub(super) fn decided_by(&self) -> (DecidedBy, &'static str) {
        match self {
            Self::Stopped(Stop::Lockdown) => (DecidedBy::Lockdown, "lockdown"),
            Self::Stopped(Stop::Paused) => (DecidedBy::Paused, PAUSED),
            Self::Stopped(Stop::Denied { .. }) => (DecidedBy::EarlierAnswer, "denied-for-the-session"),
            Self::StillDenied { .. } | Self::DeniedWithNote(_) | Self::Denied => {
                (DecidedBy::EarlierAnswer, "denied-before")
            }
            Self::TooMany { .. } => (DecidedBy::TooManyQuestions, "too-many-questions"),
            Self::Unavailable(_) | Self::Closed | Self::TimedOut { .. } => {
                (DecidedBy::TooManyQuestions, "not-shown")
            }
        }
    }
}

fn denied(note: Option<&str>) -> String {
    match note {
        Some(note) => format!("the user already denied this call, with this note: {note}"),
        None => "the user already denied this call".to_owned(),
    }
}
