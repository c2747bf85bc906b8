//! `audit verify` and `audit search`. Both work without a running trusted process and never write to the log.

use crate::arguments::{Decided, FilterOptions};
use crate::connection::Connection;
use crate::lines::TextLines;
use crate::policy::since;
use crate::print;
use crate::screen::Screen;
use anyhow::Context;
use ironcurtain_audit::{self as audit, Checked, Filter, KnownHead, Status, Written};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::shown_entry;
use ironcurtain_protocol::{AuditCheckView, Reply, Request};
use ironcurtain_secrets::{SecretError, in_time};
use ironcurtain_services::record_head;

/// Verifies the log's hash chain.
///
/// Asks the trusted process to verify the log if it is running. Otherwise, checks that the log ends with the entry
/// recorded in `audit-head.json` and in the keyring.
pub fn verify() -> anyhow::Result<Reply> {
    if let Some(mut connection) = Connection::open_if_running()? {
        return connection.ask(Request::VerifyAudit);
    }
    let home = Home::from_env()?;
    let by_file = KnownHead::read(&home.audit_head());
    let (by_keyring, without) = match kept_in_keyring(&home) {
        Ok(Some(known)) => (Some(known), String::new()),
        Ok(None) => (None, " (the keyring is locked or has no record of it)".to_owned()),
        Err(_) => (None, " (there is no keyring here)".to_owned()),
    };
    let mut checked = None;
    let mut known_by = Vec::new();
    for (known, name) in [(entry_of(&by_file), "`audit-head.json`"), (by_keyring.as_ref(), "the keyring")] {
        let Some(known) = known else { continue };
        known_by.push(name);
        let found = audit::check_written(&home.audit(), known).with_context(|| unread(&home))?;
        // Keeps the first result with a problem.
        if checked.as_ref().is_none_or(Checked::intact) {
            checked = Some(found);
        }
    }
    let checked = match checked {
        Some(checked) => checked,
        None => audit::check(&home.audit()).with_context(|| unread(&home))?,
    };
    let known_by = if known_by.is_empty() { "nothing".to_owned() } else { known_by.join(" and ") } + &without;
    let (intact, entries) = (checked.intact(), checked.entries);
    let file = home.audit_head();
    let unknown = |problem: &str| format!("the head file `{}` {problem}", file.display());
    let problem = match by_file.problem() {
        Some(problem) if by_keyring.is_none() && entries > 0 => checked.problem.or(Some(unknown(problem))),
        Some(_) | None => checked.problem,
    };
    Ok(Reply::Audit(AuditCheckView { intact, entries, problem, known_by }))
}

fn entry_of(head: &KnownHead) -> Option<&Written> {
    match head {
        KnownHead::Entry(written) => Some(written),
        KnownHead::Missing | KnownHead::Damaged(_) => None,
    }
}

/// Returns the newest entry recorded in the keyring, or `None` if the keyring is locked or has no record.
fn kept_in_keyring(home: &Home) -> Result<Option<Written>, SecretError> {
    let home = home.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|problem| SecretError::Failed(problem.to_string()))?;
    runtime.block_on(in_time(move || record_head::known(&home)))
}

/// Prints the newest matching entries in chronological order, at most `limit`.
pub fn search(of: FilterOptions, limit: usize, screen: Screen) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let mut found = audit::search(&home.audit(), &filter(of)?, limit).with_context(|| unread(&home))?;
    found.reverse();
    let value = serde_json::to_value(&found)?;
    let mut out = TextLines::default();
    let count = found.len();
    for entry in found {
        let shown = shown_entry(entry);
        out.line(print::activity(&shown, &since::words(shown.time_ms)));
    }
    match count {
        0 => out.line("No matching entries."),
        count if count == limit => {
            out.line(format_args!("Showing the newest {count} entries; use `--limit` for more."));
        }
        _ => {}
    }
    screen.show(&out, &value)
}

/// Converts the options to a filter. The path is made absolute and its symlinks are resolved, as in the log.
pub fn filter(of: FilterOptions) -> anyhow::Result<Filter> {
    let path = match of.path {
        Some(path) => {
            let complete = std::path::absolute(&path)?;
            let path = std::fs::canonicalize(&complete).unwrap_or(complete);
            Some(
                path.into_os_string()
                    .into_string()
                    .ok()
                    .context("`--path` is not valid UTF-8, so no entry can match it")?,
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
        client: None,
        path,
        decision,
        since_ms: of.since,
        until_ms: of.until,
    })
}

pub fn unread(home: &Home) -> String {
    format!("failed to read the audit log `{}`", home.audit().display())
}
