//! Network access for inspecting a remote server outside a session.

use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, Dialer, HostRules, Proxy, ProxyLimits, Record, RecordError,
    SystemResolver,
};
use std::sync::Arc;
use tokio::sync::watch;

/// Recorder that discards all events. An inspection has no audit log.
struct OffRecord {
    /// Sender that is never used but must be kept: dropping it would revoke all permissions.
    _rules: watch::Sender<Arc<HostRules>>,
}

impl Record for OffRecord {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Creates a dialer with these rules.
pub(crate) fn unrecorded_dialer(server: &str, rules: HostRules) -> Dialer {
    let (sender, rules) = watch::channel(Arc::new(rules));
    Dialer::new(Proxy {
        server: server.to_owned(),
        rules,
        ask: None,
        record: Arc::new(OffRecord { _rules: sender }),
        resolve: Arc::new(SystemResolver),
        connections: Connections::default(),
        limits: ProxyLimits::default(),
    })
}
