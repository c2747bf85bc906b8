//! The record of a single command's connections: lines for the person, where they want them.

use std::io::{self, Write};

use ironcurtain_egress::{Boxed, By, Event, Record, Verdict};

/// Tells on standard error, or keeps quiet.
pub(crate) struct Teller {
    pub(crate) tells: bool,
}

impl Record for Teller {
    fn record(&self, event: Event) -> Boxed<'_, Result<(), String>> {
        Box::pin(async move {
            if !self.tells {
                return Ok(());
            }
            let Event { protocol, host, port, verdict, .. } = event;
            let told = match verdict {
                Verdict::Allowed(By::Rule(entry)) => format!("allowed by `{entry}`"),
                Verdict::Allowed(By::Grant(_) | By::Once) => "allowed".to_owned(),
                Verdict::Refused { reason, .. } => format!("refused: {reason}"),
                Verdict::Failed { reason, .. } => format!("failed: {reason}"),
            };
            writeln!(io::stderr(), "ironcurtain-sandbox: {protocol} {host}:{port} {told}")
                .map_err(|error| error.to_string())
        })
    }
}
