//! Counters of questions and their answers.

use ironcurtain_audit::EscalationResult;
use std::fmt;
use std::time::Duration;

/// Counts what becomes of questions. Counting neither waits nor fails.
pub trait QuestionMetrics: fmt::Debug + Send + Sync {
    /// Counts a question that was put to the user.
    fn asked(&self);

    /// Counts a call that waits for the answer to the same question.
    fn merged(&self);

    /// Counts a call that the user is not asked about, by the rule that stands for the reason.
    fn unasked(&self, rule: &'static str);

    /// Counts the end of a question, after this time.
    fn answered(&self, end: &EscalationResult, took: Duration);
}
