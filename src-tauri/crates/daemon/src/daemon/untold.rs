//! What sandboxes found while no trusted process ran, or told one that was killed, put on record by the next one.

use super::Inner;
use crate::audit;
use crate::server::Report;
use ironcurtain_sandbox::{Entries, Untold};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// What there is now.
pub(super) fn listed(inner: &Inner) -> io::Result<Entries> {
    ironcurtain_sandbox::untold(&inner.shared.home.sandboxes())
}

/// Puts it on record, but for what is there already. One that is still looked for, since the process before was killed just now,
/// is waited for.
pub(super) async fn tell(inner: Arc<Inner>, listed: io::Result<Entries>) {
    match listed {
        Ok(entries) if entries.is_empty() => return,
        Ok(entries) => tell_all(&inner, entries).await,
        Err(problem) => {
            tracing::error!(%problem, "what sandboxes found when nobody was there cannot be read");
        }
    }
    inner.shared.changed();
}

async fn tell_all(inner: &Inner, entries: Entries) {
    let log = inner.shared.home.audit().join(audit::LOG_NAME);
    let read = tokio::task::spawn_blocking(move || {
        let all = entries.read();
        // What cannot be looked up is told twice rather than not at all.
        let known = audit::reports(&log).unwrap_or_else(|problem| {
            tracing::error!(%problem, "what sandboxes have told before cannot be looked up");
            BTreeSet::new()
        });
        (all, known)
    });
    // It can only have been cut off by the end.
    let Ok((all, known)) = read.await else { return };
    for one in all {
        tell_one(inner, one, &known).await;
    }
}

async fn tell_one(inner: &Inner, found: Untold, known: &BTreeSet<String>) {
    let report = Report::of_nobody(inner.shared.audit.clone(), &inner.shared.last_words);
    for (id, event) in found.after(0) {
        if id.as_ref().is_some_and(|id| known.contains(id)) {
            continue;
        }
        if report.tell(event, id).await.is_err() {
            // It is told again at the next start.
            return;
        }
    }
    if let Err(problem) = found.forget() {
        tracing::error!(%problem, "what sandboxes found is on record, and is still kept beside it");
    }
}
