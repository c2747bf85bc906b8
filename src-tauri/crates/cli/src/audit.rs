//! `audit verify`: with or without a trusted process.

use crate::connection::Connection;
use anyhow::Context;
use ironcurtain_audit::check_known;
use ironcurtain_daemon::Home;
use ironcurtain_protocol::{AuditCheckView, Reply, Request};

/// Checks the log. A trusted process that runs is asked, because it knows best whether the end of the log is there; without
/// one, what it noted last is gone by.
pub fn verify() -> anyhow::Result<Reply> {
    if let Some(mut connection) = Connection::open_if_running()? {
        return connection.ask(Request::VerifyAudit);
    }
    let home = Home::from_env()?;
    let checked = check_known(&home.audit(), &home.audit_head())
        .with_context(|| format!("the audit log `{}` cannot be read", home.audit().display()))?;
    let (intact, entries) = (checked.intact(), checked.entries);
    Ok(Reply::Audit(AuditCheckView { intact, entries, problem: checked.problem }))
}
