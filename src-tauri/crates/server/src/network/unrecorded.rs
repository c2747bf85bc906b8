//! Network access to a remote server during an inspection or a login, without a session.

use super::fixed_rules;
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, Dialer, HostRules, Proxy, ProxyLimits, Record, RecordError,
    SystemResolver,
};
use std::sync::Arc;

/// Discards all events, because an inspection has no audit log.
struct DiscardRecord;

impl Record for DiscardRecord {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Returns a dialer with these rules.
#[must_use]
pub fn unrecorded_dialer(server: &str, rules: HostRules) -> Dialer {
    let (rules, record) = fixed_rules::rules(rules, Arc::new(DiscardRecord));
    Dialer::new(Proxy {
        server: server.to_owned(),
        rules,
        ask: None,
        record,
        resolve: Arc::new(SystemResolver::default()),
        connections: Connections::default(),
        limits: ProxyLimits::default(),
    })
}
