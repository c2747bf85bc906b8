//! Network access for a remote server that is only inspected or logged in to, without a session.

use super::fixed;
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, Dialer, HostRules, Proxy, ProxyLimits, Record, RecordError,
    SystemResolver,
};
use std::sync::Arc;

/// Records nothing, because an inspection has no audit log.
struct OffRecord;

impl Record for OffRecord {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Returns a dialer with these rules.
#[must_use]
pub fn unrecorded_dialer(server: &str, rules: HostRules) -> Dialer {
    let (rules, record) = fixed::rules(rules, Arc::new(OffRecord));
    Dialer::new(Proxy {
        server: server.to_owned(),
        rules,
        ask: None,
        record,
        resolve: Arc::new(SystemResolver),
        connections: Connections::default(),
        limits: ProxyLimits::default(),
    })
}
