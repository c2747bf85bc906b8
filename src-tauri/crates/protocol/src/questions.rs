//! Current questions, for display. Nothing in this module can answer a question.

use serde::{Deserialize, Serialize};

/// Pending and expired questions, and session-wide denials.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuestionsView {
    /// Pending questions, oldest first.
    pub waiting: Vec<QuestionView>,
    /// Expired questions, oldest first.
    pub missed: Vec<QuestionView>,
    /// Denials that last until their session ends.
    pub denied: Vec<DenialView>,
}

/// Selection of pending questions, for [`crate::Request::Deny`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionSelection {
    /// All currently pending questions.
    All,
    /// The questions with these ids.
    These(Vec<String>),
}

/// Question to the user, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Question id.
    pub id: String,
    /// Id of the session that the question belongs to.
    pub session: String,
    /// Display name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Name of the tool; `None` if the request comes from the server itself.
    pub tool: Option<String>,
    /// Effects of the call, one per line, most dangerous first.
    pub lines: Vec<String>,
    /// Name of the rule that requires the approval.
    pub rule: String,
    /// Reason given by the rule.
    pub reason: String,
    /// Time at which the question was asked, in milliseconds since the Unix epoch; set for pending questions only.
    pub since_ms: Option<u64>,
    /// Seconds until the question is removed; set for expired questions only.
    pub kept_seconds: Option<u64>,
    /// State of the question.
    pub state: QuestionState,
}

/// State of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionState {
    /// The call is waiting for the answer.
    Waiting,
    /// The question expired. A repeated call asks again.
    Missed,
    /// The question was reopened after its call was denied.
    ShownAgain,
    /// The user allowed the call after it was denied: one identical call is allowed.
    AllowedLate,
}

/// Denial that lasts until its session ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialView {
    /// Id of the question that the user answered.
    pub id: String,
    /// Session id.
    pub session: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Tool that is denied, and the paths or hosts for which it is denied.
    pub what: String,
    /// The user's note for the agent, if any.
    pub note: Option<String>,
    /// Time of the user's answer, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}
