//! The daemon's Prometheus metrics.
//!
//! - Keeps values in memory, starting at zero when the daemon starts. Recording never blocks.
//! - Labels never contain text from an agent or a server.

use ironcurtain_audit::EscalationResult;
use ironcurtain_consent::QuestionMetrics;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Upper bounds of the histogram buckets for call durations, in seconds.
const CALL_BUCKETS: [f64; 12] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0];

/// Upper bounds of the histogram buckets for the user's response times, in seconds.
const ANSWER_BUCKETS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 120.0, 600.0];

/// Label whose name and value are known at compile time.
type Label = [(&'static str, &'static str); 1];

/// Counters and histograms. Clones share the same values.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<MetricValues>);

#[derive(Debug)]
struct MetricValues {
    violations: Counter,
    root_changes: Counter,
    questions: Counter,
    merged: Counter,
    unasked: Family<Label, Counter>,
    answers: Family<Label, Counter>,
    answering: Histogram,
    calls: Family<Label, Counter>,
    calling: Histogram,
    forwarding: Histogram,
    bundles: Family<Label, Counter>,
    sessions: Counter,
    restarts: Counter,
}

/// Values that are measured when the metrics are requested.
#[derive(Debug, Clone, Copy)]
pub struct Gauges {
    /// Number of active sessions.
    pub sessions: usize,
    /// Number of pending questions.
    pub questions: usize,
    /// Sequence number of the newest audit entry.
    pub entries: u64,
    /// Used bytes and total bytes of the memory budget for messages.
    pub memory: (u64, u64),
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(MetricValues {
            violations: Counter::default(),
            root_changes: Counter::default(),
            questions: Counter::default(),
            merged: Counter::default(),
            unasked: Family::default(),
            answers: Family::default(),
            answering: Histogram::new(ANSWER_BUCKETS),
            calls: Family::default(),
            calling: Histogram::new(CALL_BUCKETS),
            forwarding: Histogram::new(CALL_BUCKETS),
            bundles: Family::default(),
            sessions: Counter::default(),
            restarts: Counter::default(),
        }))
    }
}

impl Metrics {
    /// Counts a call that was refused because of a path outside the server's roots.
    pub fn count_violation(&self) {
        self.0.violations.inc();
    }

    /// Counts a `roots/list_changed` notification to a server.
    pub fn count_roots_changed(&self) {
        self.0.root_changes.inc();
    }

    /// Counts a decision, which is `allow`, `deny` or `escalate`.
    pub fn count_decision(&self, decision: &'static str) {
        self.0.calls.get_or_create(&[("decision", decision)]).inc();
    }

    /// Records the time between the arrival and the forwarding of a call that required no approval.
    pub fn observe_forwarding(&self, after: Duration) {
        self.0.forwarding.observe(after.as_secs_f64());
    }

    /// Records the time between a call's arrival and its response, including any wait for the user.
    pub fn observe_call(&self, after: Duration) {
        self.0.calling.observe(after.as_secs_f64());
    }

    /// Counts an attempt to update the organization's rules. The result is `new`, `unchanged`, `failed` or `refused`.
    pub fn count_bundle_update(&self, result: &'static str) {
        self.0.bundles.get_or_create(&[("result", result)]).inc();
    }

    /// Counts an opened session.
    pub fn count_session(&self) {
        self.0.sessions.inc();
    }

    /// Counts the restart of a server.
    pub fn count_restart(&self) {
        self.0.restarts.inc();
    }

    /// Returns all metrics in the Prometheus text format.
    ///
    /// # Errors
    /// Fails if a value cannot be formatted.
    pub fn text(&self, gauges: Gauges) -> Result<String, fmt::Error> {
        let (f, mut all) = (&*self.0, Registry::default());
        let gauge = |number: u64| -> Gauge {
            let gauge: Gauge = Gauge::default();
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
            gauge
        };
        let entries: Counter = Counter::default();
        entries.inner().store(gauges.entries, Ordering::Relaxed);
        all.register("mcp_roots_violations", "Refused paths outside the roots", f.violations.clone());
        all.register(
            "mcp_roots_cache_invalidations",
            "Notifications to servers about changed roots",
            f.root_changes.clone(),
        );
        all.register("ironcurtain_questions", "Questions asked", f.questions.clone());
        all.register(
            "ironcurtain_questions_merged",
            "Calls that waited for the answer to the same question",
            f.merged.clone(),
        );
        all.register(
            "ironcurtain_questions_unasked",
            "Calls denied without asking, by reason",
            f.unasked.clone(),
        );
        all.register("ironcurtain_questions_open", "Pending questions", gauge(gauges.questions as u64));
        all.register("ironcurtain_answers", "Outcomes of questions, by kind", f.answers.clone());
        all.register("ironcurtain_answer_seconds", "Time until the user answered", f.answering.clone());
        all.register("ironcurtain_calls", "Tool calls, by decision", f.calls.clone());
        all.register("ironcurtain_call_seconds", "Time from a call to its response", f.calling.clone());
        all.register(
            "ironcurtain_call_forward_seconds",
            "Time until a call that requires no approval is forwarded to the server",
            f.forwarding.clone(),
        );
        all.register(
            "ironcurtain_bundle_updates",
            "Attempts to update the organization's rules, by result",
            f.bundles.clone(),
        );
        all.register("ironcurtain_sessions", "Sessions opened", f.sessions.clone());
        all.register("ironcurtain_sessions_open", "Open sessions", gauge(gauges.sessions as u64));
        all.register("ironcurtain_server_restarts", "Server restarts", f.restarts.clone());
        let (held, pool) = gauges.memory;
        all.register("ironcurtain_memory_bytes", "Memory held by messages in transit", gauge(held));
        all.register("ironcurtain_memory_limit_bytes", "Maximum memory for messages in transit", gauge(pool));
        all.register("ironcurtain_record_entries", "Entries in the audit log", entries);
        let mut text = String::new();
        encode(&mut text, &all)?;
        Ok(text)
    }
}

impl QuestionMetrics for Metrics {
    fn asked(&self) {
        self.0.questions.inc();
    }

    fn merged(&self) {
        self.0.merged.inc();
    }

    fn unasked(&self, why: &'static str) {
        self.0.unasked.get_or_create(&[("why", why)]).inc();
    }

    fn answered(&self, end: &EscalationResult, took: Duration) {
        let kind = match end {
            EscalationResult::Approved => "approved",
            EscalationResult::Denied => "denied",
            EscalationResult::TimedOut => "timeout",
            EscalationResult::Closed => "closed",
            EscalationResult::Settled => "settled",
            EscalationResult::Unavailable => "unavailable",
            EscalationResult::Stopped => "stopped",
            EscalationResult::Other(_) => "other",
        };
        self.0.answers.get_or_create(&[("kind", kind)]).inc();
        if matches!(end, EscalationResult::Approved | EscalationResult::Denied) {
            self.0.answering.observe(took.as_secs_f64());
        }
    }
}
