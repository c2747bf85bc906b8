//! The user's answer to a question, and the slot through which a front end sends it.
//!
//! - A slot sends at most one answer. Without an answer, the call is denied.

use ironcurtain_grants::Lifetime;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Sender for the answer to one question. Dropping it without an answer denies the call.
#[derive(Debug)]
#[must_use = "dropping the slot denies the call"]
pub struct AnswerSlot {
    pub(crate) answer: oneshot::Sender<Answer>,
    pub(crate) activity: mpsc::Sender<()>,
}

impl AnswerSlot {
    /// Sends the user's answer. Does nothing if the question is already closed.
    pub fn answer(self, answer: Answer) {
        // Sending fails only if the question is already closed, so the answer has no effect.
        let _ = self.answer.send(answer);
    }

    /// Returns `true` if the question is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }

    /// Restarts the deadline, because the user is active in the dialog.
    pub fn report_activity(&self) {
        // If the channel is full, a report is already pending.
        let _ = self.activity.try_send(());
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// Accepts an offer for one of its lifetimes.
    Allow {
        /// Index into [`Question::offers`](crate::Question::offers).
        offer: usize,
        /// One of that offer's lifetimes.
        lifetime: Lifetime,
    },
    /// Denies the call because the user cannot be asked.
    Unavailable {
        /// Reason, as a sentence shown to the agent.
        why: String,
    },
    /// Denies the call.
    Deny {
        /// The user's note, which the agent receives.
        note: Option<String>,
        /// Additional calls to which the denial applies.
        reach: DenialReach,
    },
}

/// Calls to which a denial applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenialReach {
    /// Only this call.
    Call,
    /// This call and all calls from the same agent that are pending when the user answers.
    Waiting,
    /// This call and all calls that [`Question::denial`](crate::Question::denial) describes, until the session ends.
    Session,
    /// This call and all calls of the session, until the user resumes it.
    Pause,
}

impl DenialReach {
    /// Returns the clause that describes the denial in the audit log.
    pub(crate) fn audit_clause(self, note: Option<&str>) -> String {
        let reach = match self {
            Self::Call => "",
            Self::Waiting => ", with the agent's other pending questions",
            Self::Session => ", for the rest of the session",
            Self::Pause => ", and the agent is paused",
        };
        let note = note.map_or_else(String::new, |note| format!(", with the note: {note}"));
        format!("{reach}{note}")
    }
}

/// Reason a question is removed from the screen without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithdrawalReason {
    /// The question's deadline passed.
    Deadline,
    /// The client cancelled the call.
    Cancelled,
    /// The session was closed.
    SessionEnded,
    /// The question is no longer needed, for example because of a new grant.
    Settled,
    /// A stop denies the question's call.
    Stopped,
}
