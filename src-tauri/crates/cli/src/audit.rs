//! `audit verify`: with or without a trusted process.

use crate::connection::Connection;
use anyhow::Context;
use ironcurtain_audit::{LOG_NAME, check};
use ironcurtain_daemon::Home;
use ironcurtain_protocol::{AuditCheckView, Reply, Request};

/// Checks the log. A trusted process that runs is asked, because it alone knows whether the end of the log is there.
pub fn verify() -> anyhow::Result<Reply> {
    if let Some(mut connection) = Connection::open_if_running()? {
        return connection.ask(Request::VerifyAudit);
    }
    let log = Home::from_env()?.audit().join(LOG_NAME);
    let checked = check(&log).with_context(|| format!("the audit log `{}` cannot be read", log.display()))?;
    let (intact, entries) = (checked.intact(), checked.entries);
    Ok(Reply::Audit(AuditCheckView { intact, entries, problem: checked.problem }))
}
