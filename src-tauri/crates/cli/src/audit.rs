//! `audit verify` and `audit search`. Both work without a running trusted process and never write to the log.

use crate::arguments::{Decided, FilterOptions};
use crate::connection::Connection;
use crate::policy::point_in_time;
use crate::reply_text;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::Context;
use ironcurtain_audit::{self as audit, ChainPosition, Filter, KnownHead, LogCheck, Status};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::shown_entry;
use ironcurtain_protocol::{AuditCheckView, Reply, Request};
use ironcurtain_secrets::{SecretError, with_unlock_timeout};
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
    let file_head = KnownHead::read(&home.audit_head());
    let (keyring_entry, keyring_problem) = match keyring_head(&home) {
        Ok(Some(known)) => (Some(known), String::new()),
        Ok(None) => (None, " (the keyring is locked or has no record of it)".to_owned()),
        Err(_) => (None, " (there is no keyring here)".to_owned()),
    };
    let mut checked = None;
    let mut verified_by = Vec::new();
    for (known, name) in
        [(head_entry(&file_head), "`audit-head.json`"), (keyring_entry.as_ref(), "the keyring")]
    {
        let Some(known) = known else { continue };
        verified_by.push(name);
        let found = audit::check_written(&home.audit(), known).with_context(|| read_error(&home))?;
        // Keeps the first result with a problem.
        if checked.as_ref().is_none_or(LogCheck::intact) {
            checked = Some(found);
        }
    }
    let checked = match checked {
        Some(checked) => checked,
        None => audit::check(&home.audit()).with_context(|| read_error(&home))?,
    };
    let verified_by = if verified_by.is_empty() { "nothing".to_owned() } else { verified_by.join(" and ") }
        + &keyring_problem;
    let (intact, entries) = (checked.intact(), checked.entries);
    let file = home.audit_head();
    let unknown = |problem: &str| format!("the head file `{}` {problem}", file.display());
    let problem = match file_head.problem() {
        Some(problem) if keyring_entry.is_none() && entries > 0 => checked.problem.or(Some(unknown(problem))),
        Some(_) | None => checked.problem,
    };
    Ok(Reply::Audit(AuditCheckView { intact, entries, problem, verified_by }))
}

fn head_entry(head: &KnownHead) -> Option<&ChainPosition> {
    match head {
        KnownHead::Entry(written) => Some(written),
        KnownHead::Missing | KnownHead::Damaged(_) => None,
    }
}

/// Returns the newest entry recorded in the keyring, or `None` if the keyring is locked or has no record.
fn keyring_head(home: &Home) -> Result<Option<ChainPosition>, SecretError> {
    let home = home.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|problem| SecretError::Failed(problem.to_string()))?;
    runtime.block_on(with_unlock_timeout(move || record_head::read_stored(&home)))
}

/// Prints the newest matching entries in chronological order, at most `limit`.
pub fn search(options: FilterOptions, limit: usize, screen: Screen) -> anyhow::Result<()> {
    let home = Home::from_env()?;
    let mut found =
        audit::search(&home.audit(), &filter(options)?, limit).with_context(|| read_error(&home))?;
    found.reverse();
    let value = serde_json::to_value(&found)?;
    let mut out = TextLines::default();
    let count = found.len();
    for entry in found {
        let printed = shown_entry(entry);
        out.line(reply_text::activity_line(&printed, &point_in_time::format_time(printed.time_ms)));
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
pub fn filter(options: FilterOptions) -> anyhow::Result<Filter> {
    let path = match options.path {
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
    let decision = options.decision.map(|decided| match decided {
        Decided::Allow => Status::Allow,
        Decided::Deny => Status::Deny,
        Decided::Escalate => Status::Escalate,
    });
    Ok(Filter {
        text: (!options.text.is_empty()).then(|| options.text.join(" ")),
        server: options.server,
        tool: options.tool,
        session: options.session,
        client: None,
        path,
        decision,
        since_ms: options.since,
        until_ms: options.until,
    })
}

pub fn read_error(home: &Home) -> String {
    format!("failed to read the audit log `{}`", home.audit().display())
}
