//! Why nobody said yes.

use super::Stop;
use ironcurtain_audit::{DecidedBy, EscalationResult};

/// The name that stands for a rule where the agent is paused.
pub const PAUSED: &str = "paused";

/// Nobody said yes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The person said no, and why.
    #[error("the user denied it and says: {0}")]
    DeniedWithNote(String),
    /// The person said no.
    #[error("the user denied it")]
    Denied,
    /// Nobody can be asked, and why.
    #[error("{0}")]
    Unavailable(String),
    /// The dialog went away.
    #[error("the question was closed without an answer")]
    Closed,
    /// Nobody answered in time.
    #[error("the user did not answer within {seconds} s")]
    TimedOut {
        /// The time that it waited.
        seconds: u64,
    },
    /// Nobody is asked about it.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The person said no to the same a moment ago.
    #[error("{}, and it is not asked about again for {seconds} s", denied(.note.as_deref()))]
    StillDenied {
        /// The person's note then.
        note: Option<String>,
        /// The time until it is asked about again.
        seconds: u64,
    },
    /// The client asks too much.
    #[error("the user was asked {most} times within a minute: too many questions; try again in {seconds} s")]
    TooMany {
        /// The number of questions that a client may put within a minute.
        most: usize,
        /// The time until it may put another one.
        seconds: u64,
    },
}

impl NotApproved {
    /// The end of the question that others wait for as well, on record.
    pub(super) fn on_record(&self) -> EscalationResult {
        match self {
            Self::DeniedWithNote(_) | Self::Denied | Self::StillDenied { .. } => EscalationResult::Denied,
            Self::Unavailable(_) | Self::TooMany { .. } => EscalationResult::Unavailable,
            Self::Closed => EscalationResult::Closed,
            Self::TimedOut { .. } => EscalationResult::TimedOut,
            Self::Stopped(_) => EscalationResult::Stopped,
        }
    }

    /// The ground on which it is denied without a question, and the name that stands for a rule.
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
