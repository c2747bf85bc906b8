//! What a sandbox has found when its server had ended, put where the person sees it.

use crate::audit::{Audit, Entry, Event};

/// Whose sandbox it is, and where that is written.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The audit log.
    pub(crate) audit: Audit,
    /// The session.
    pub(crate) session: String,
    /// The server.
    pub(crate) server: String,
}

impl Report {
    /// Puts on record what was moved away, and what should have been looked at or cleaned up and was not.
    pub(crate) async fn tell(&self, told: &ironcurtain_sandbox::Event) {
        use ironcurtain_sandbox::Event as Told;
        let mut entry = match told {
            Told::Quarantined { path, moved_to } => {
                let summary = format!(
                    "the server {} left `{path}`: it was moved to `{moved_to}`, since programs of yours would have run \
                     what it says",
                    self.server
                );
                let mut entry = Entry::new(Event::BoundaryViolation, summary);
                entry.paths = vec![path.clone()];
                entry
            }
            Told::Unfinished { reason } => {
                let summary = format!(
                    "the sandbox of the server {} was not cleaned up as a whole: {reason}",
                    self.server
                );
                Entry::new(Event::Server, summary)
            }
            Told::Started | Told::Failed { .. } | Told::Limited { .. } | Told::Exited { .. } => return,
        };
        tracing::warn!("{}", entry.summary);
        entry.session = Some(self.session.clone());
        entry.server_name = Some(self.server.clone());
        entry.sandboxed = Some(true);
        if let Err(problem) = self.audit.record(entry).await {
            tracing::error!(%problem, "what a sandbox has left is not on record");
        }
    }
}
