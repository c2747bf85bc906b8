//! Constant rules for connections that IronCurtain itself opens.

use ironcurtain_egress::{BoxFuture, ConnectionEvent, HostRules, Record, RecordError};
use std::sync::Arc;
use tokio::sync::watch;

/// Connection record that owns the sender of its rules. Dropping the sender would revoke the rules.
struct RecordWithRules {
    record: Arc<dyn Record>,
    _rules: watch::Sender<Arc<HostRules>>,
}

impl Record for RecordWithRules {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        self.record.record(event)
    }
}

/// Returns the rules for a proxy, and the record that keeps them in effect.
pub(super) fn rules(
    rules: HostRules,
    record: Arc<dyn Record>,
) -> (watch::Receiver<Arc<HostRules>>, Arc<dyn Record>) {
    let (sender, rules) = watch::channel(Arc::new(rules));
    (rules, Arc::new(RecordWithRules { record, _rules: sender }))
}
