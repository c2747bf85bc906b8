//! Logs a command's connections to standard error.

use std::io::{self, Write};

use ironcurtain_egress::{BoxFuture, ConnectionEvent, ConnectionVerdict, PermittedBy, Record, RecordError};

/// Logs connections to standard error, if enabled.
pub(crate) struct StderrLog {
    pub(crate) is_enabled: bool,
}

impl Record for StderrLog {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async move {
            if !self.is_enabled {
                return Ok(());
            }
            let ConnectionEvent { protocol, host, port, verdict, .. } = event;
            let outcome = match verdict {
                ConnectionVerdict::Allowed(PermittedBy::Rule(entry)) => format!("allowed by `{entry}`"),
                ConnectionVerdict::Allowed(PermittedBy::Grant(_) | PermittedBy::Once) => "allowed".to_owned(),
                ConnectionVerdict::Refused { reason, .. } => format!("refused: {reason}"),
                ConnectionVerdict::Failed { reason, .. } => format!("failed: {reason}"),
            };
            writeln!(io::stderr(), "ironcurtain-sandbox: {protocol} {host}:{port} {outcome}")
                .map_err(RecordError::new)
        })
    }
}
