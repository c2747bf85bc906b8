//! Reasons that a call was not approved.

use super::Stop;
use ironcurtain_audit::{DecidedBy, EscalationResult};

/// Name recorded in place of a rule when the agent is paused.
pub const PAUSED: &str = "paused";

/// Reason that a call was not approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The user denied it with a note.
    #[error("the user denied it and says: {0}")]
    DeniedWithNote(String),
    /// The user denied it.
    #[error("the user denied it")]
    Denied,
    /// The user cannot be asked.
    #[error("{0}")]
    Unavailable(String),
    /// The dialog was closed.
    #[error("the question was closed without an answer")]
    Closed,
    /// The deadline passed.
    #[error("the user did not answer within {seconds} s")]
    TimedOut {
        /// Time that the question was open.
        seconds: u64,
    },
    /// A stop covers the call.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The user denied the same call recently.
    #[error("{}; it is denied without asking for another {seconds} s", denied(.note.as_deref()))]
    StillDenied {
        /// The note of that denial.
        note: Option<String>,
        /// Time until the call prompts again.
        seconds: u64,
    },
    /// The client asks too many questions.
    #[error("the user was asked {most} times within a minute: too many questions; try again in {seconds} s")]
    TooMany {
        /// Maximum number of questions per minute, of the session or of the client.
        most: usize,
        /// Time until the client may ask again.
        seconds: u64,
    },
}

impl NotApproved {
    /// Returns `true` if the user answered the question with a denial.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Denied | Self::DeniedWithNote(_))
    }

    /// Returns the recorded result for questions that wait for the same answer.
    pub(super) fn on_record(&self) -> EscalationResult {
        match self {
            Self::DeniedWithNote(_) | Self::Denied | Self::StillDenied { .. } => EscalationResult::Denied,
            Self::Unavailable(_) | Self::TooMany { .. } => EscalationResult::Unavailable,
            Self::Closed => EscalationResult::Closed,
            Self::TimedOut { .. } => EscalationResult::TimedOut,
            Self::Stopped(_) => EscalationResult::Stopped,
        }
    }

    /// Returns the recorded decider and the name in place of a rule, for a denial without a question.
    pub(super) fn ground(&self) -> (DecidedBy, &'static str) {
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
        Some(note) => format!("the user denied the same call before and says: {note}"),
        None => "the user denied the same call before".to_owned(),
    }
}
