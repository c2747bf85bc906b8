//! `audit verify` and `audit search`: with or without a trusted process. The log is read, and never written.

use crate::arguments::{Decided, FilterOptions};
use crate::connection::Connection;
use crate::policy::since;
use crate::print;
use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::Context;
use ironcurtain_audit::{self as audit, Filter, Status};
use ironcurtain_daemon::{Home, shown_entry};
use ironcurtain_protocol::{AuditCheckView, Reply, Request};

/// Checks the log. A trusted process that runs is asked, because it knows best whether the end of the log is there; without
/// one, what it noted last is gone by.
pub fn verify() -> anyhow::Result<Reply> {
    if let Some(mut connection) = Connection::open_if_running()? {
        return connection.ask(Request::VerifyAudit);
    }
    let home = Home::from_env()?;
    let checked = audit::check_known(&home.audit(), &home.audit_head()).with_context(|| unread(&home))?;
    let (intact, entries) = (checked.intact(), checked.entries);
    Ok(Reply::Audit(AuditCheckView { intact, entries, problem: checked.problem }))
}

/// Shows the newest entries that match, oldest first.
pub fn search(of: FilterOptions, limit: usize, screen: Screen) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let mut found = audit::search(&home.audit(), &filter(of)?, limit).with_context(|| unread(&home))?;
    found.reverse();
    let value = serde_json::to_value(&found)?;
    let mut sheet = Sheet::default();
    let count = found.len();
    for entry in found {
        let shown = shown_entry(entry);
        sheet.line(print::activity(&shown, &since::words(shown.time_ms)));
    }
    match count {
        0 => sheet.line("Nothing on record matches."),
        count if count == limit => {
            sheet.line(format_args!("These are the newest {count}; `--limit` shows more."));
        }
        _ => {}
    }
    screen.show(&sheet, &value)
}

/// The conditions as the log knows them. A path is made complete, and links in it are followed, as they are on record.
pub fn filter(of: FilterOptions) -> anyhow::Result<Filter> {
    let path = match of.path {
        Some(path) => {
            let complete = std::path::absolute(&path)?;
            let path = std::fs::canonicalize(&complete).unwrap_or(complete);
            Some(
                path.into_os_string()
                    .into_string()
                    .ok()
                    .context("the path is not UTF-8, so it is not on record")?,
            )
        }
        None => None,
    };
    let decision = of.decision.map(|decided| match decided {
        Decided::Allow => Status::Allow,
        Decided::Deny => Status::Deny,
        Decided::Escalate => Status::Escalate,
    });
    Ok(Filter {
        text: (!of.text.is_empty()).then(|| of.text.join(" ")),
        server: of.server,
        tool: of.tool,
        session: of.session,
        path,
        decision,
        since_ms: of.since,
        until_ms: of.until,
    })
}

pub fn unread(home: &Home) -> String {
    format!("the audit log `{}` cannot be read", home.audit().display())
}
