//! The questions of the moment, to show to people. None of these values answers one.

use serde::{Deserialize, Serialize};

/// The questions that wait, and what became of others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuestionsView {
    /// Those that stand before the person, the oldest first.
    pub waiting: Vec<QuestionView>,
    /// Those that nobody answered in time, the oldest first.
    pub missed: Vec<QuestionView>,
    /// Everything that is denied until its session ends.
    pub denied: Vec<DenialView>,
}

/// The choice of questions that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingChoice {
    /// Every one that waits at that moment.
    All,
    /// These, by their ids.
    These(Vec<String>),
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Question id.
    pub id: String,
    /// Session id.
    pub session: String,
    /// The client, by name.
    pub client: String,
    /// The server that would act.
    pub server: String,
    /// The tool; none when the server asks by itself.
    pub tool: Option<String>,
    /// Everything that the call would do, a line each, the worst first.
    pub lines: Vec<String>,
    /// The rule that asks.
    pub rule: String,
    /// That rule's reason.
    pub reason: String,
    /// When it was put, of one that waits.
    pub since_ms: Option<u64>,
    /// The time for which it is kept, of one that nobody answered in time.
    pub kept_seconds: Option<u64>,
    /// The state that it is in.
    pub state: QuestionState,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionState {
    /// Its call waits for the answer.
    Waiting,
    /// Nobody answered in time; it is asked again when the agent calls again.
    Missed,
    /// The person has it before them again.
    ShownAgain,
    /// The person said yes late: the same call passes once.
    AllowedLate,
}

/// A no for the rest of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialView {
    /// The id of the question that it was the answer to.
    pub id: String,
    /// Session id.
    pub session: String,
    /// The client, by name.
    pub client: String,
    /// The server.
    pub server: String,
    /// The tool, and the places that it is denied at.
    pub what: String,
    /// The person's note for the agent.
    pub note: Option<String>,
    /// When the person said it.
    pub time_ms: u64,
}
