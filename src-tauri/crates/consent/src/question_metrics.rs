//! Counters for questions and answers.

use ironcurtain_audit::EscalationResult;
use std::fmt;
use std::time::Duration;

/// Receives a call for each question and answer. Implementations must not block or fail.
pub trait QuestionMetrics: fmt::Debug + Send + Sync {
    /// Counts a question that was shown to the user.
    fn asked(&self);

    /// Counts a call that is waiting for the answer to an identical question.
    fn merged(&self);

    /// Counts a call that was denied or allowed without asking. `rule` is the rule name in the audit log.
    fn unasked(&self, rule: &'static str);

    /// Counts a question that was answered or closed, and records how long it was open.
    fn answered(&self, end: &EscalationResult, took: Duration);
}
