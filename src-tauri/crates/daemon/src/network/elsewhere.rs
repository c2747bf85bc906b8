//! The way to a server that runs elsewhere and has no session: it is only asked for its tools.

use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, Dialer, HostRules, Proxy, ProxyLimits, Record, RecordError,
    SystemResolver,
};
use std::sync::Arc;
use tokio::sync::watch;

/// Writes nothing down: whoever asks a server for its tools has no record.
struct OffRecord {
    /// Without it nothing is allowed any more.
    _rules: watch::Sender<Arc<HostRules>>,
}

impl Record for OffRecord {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Opens connections by these rules.
pub(crate) fn dialer_off_record(server: &str, rules: HostRules) -> Dialer {
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
