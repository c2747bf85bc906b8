//! Counters of questions and their answers.

use ironcurtain_audit::EscalationResult;
use std::fmt;
use std::time::Duration;

/// Counters for the outcome of questions. Counting must not block or fail.
pub trait QuestionMetrics: fmt::Debug + Send + Sync {
    /// Counts a question that the user was asked.
    fn asked(&self);

    /// Counts a call that waits for an identical question.
    fn merged(&self);

    /// Counts a call that was settled without asking, by the name recorded in place of a rule.
    fn unasked(&self, rule: &'static str);

    /// Counts the end of a question and its duration.
    fn answered(&self, end: &EscalationResult, took: Duration);
}
