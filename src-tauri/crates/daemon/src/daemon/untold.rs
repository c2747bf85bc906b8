//! What sandboxes found while no trusted process ran, put on record by the next one.

use super::Inner;
use crate::server::Report;
use ironcurtain_sandbox::Untold;
use std::sync::Arc;

/// Puts it on record. One that is still looked for, since the process before was killed just now, is waited for.
pub(super) async fn tell(inner: Arc<Inner>) {
    let dir = inner.shared.home.sandboxes();
    let found = tokio::task::spawn_blocking(move || ironcurtain_sandbox::untold(&dir)).await;
    match found {
        Ok(Ok(all)) => {
            for one in all {
                tell_one(&inner, one).await;
            }
        }
        Ok(Err(problem)) => {
            tracing::error!(%problem, "what sandboxes found when nobody was there cannot be read");
        }
        // It was cut off by the end.
        Err(_) => {}
    }
    inner.shared.changed();
}

async fn tell_one(inner: &Inner, found: Untold) {
    let report = Report::of_nobody(inner.shared.audit.clone(), &inner.shared.last_words);
    for event in &found.events {
        if report.tell(event).await.is_err() {
            // It is told again at the next start.
            return;
        }
    }
    if let Err(problem) = found.forget() {
        tracing::error!(%problem, "what sandboxes found is on record, and will be once more");
    }
}
