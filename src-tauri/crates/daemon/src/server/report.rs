//! What a sandbox has found when its server had ended, put where the person sees it.

use crate::audit::{Audit, AuditError, Entry, Event};
use crate::last_words::{Awaited, LastWords};

/// Whose sandbox it is, and where that is written.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The audit log.
    pub(crate) audit: Audit,
    /// The session and the server; they are not known of what ended without us.
    pub(crate) whose: Option<Whose>,
    /// Kept for its drop: until then the trusted process does not end.
    pub(crate) _awaited: Awaited,
}

/// A server of a session.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    /// The session.
    pub(crate) session: String,
    /// The server.
    pub(crate) server: String,
}

/// Why a server is stopped when what covers a path in its sandbox is lost.
pub(crate) fn uncovered(path: &str) -> String {
    format!("a program outside replaced or moved `{path}`, which is hidden from it or closed to it")
}

impl Report {
    /// For a sandbox that nobody of us listened to.
    pub(crate) fn of_nobody(audit: Audit, last_words: &LastWords) -> Self {
        Self { audit, whose: None, _awaited: last_words.awaited() }
    }

    /// Puts on record what was moved away, and what should have been looked at or cleaned up and was not; `id` is how what is
    /// told is named for good, if it is.
    ///
    /// # Errors
    /// It is not on record; that has been logged.
    pub(crate) async fn tell(
        &self,
        told: &ironcurtain_sandbox::Event,
        id: Option<String>,
    ) -> Result<(), AuditError> {
        use ironcurtain_sandbox::Event as Told;
        let whose = match &self.whose {
            Some(Whose { server, .. }) => format!("the server {server}"),
            None => "a server whose session was cut short".to_owned(),
        };
        let mut entry = match told {
            Told::Quarantined { path, moved_to } => {
                let summary = format!(
                    "{whose} left `{path}`: it was moved to `{moved_to}`, since programs of yours would have run \
                     what it says"
                );
                let mut entry = Entry::new(Event::BoundaryViolation, summary);
                entry.paths = vec![path.clone()];
                entry
            }
            Told::Uncovered { path } => {
                let summary = format!(
                    "{whose} was stopped: {}; it could reach what is there now until then",
                    uncovered(path)
                );
                let mut entry = Entry::new(Event::Server, summary);
                entry.paths = vec![path.clone()];
                entry
            }
            Told::Unsearched { writable } => {
                // One that was begun when nobody was there to be told has not noted them.
                let places = if writable.is_empty() {
                    String::new()
                } else {
                    format!(": look in `{}`", writable.join("`, `"))
                };
                let summary = format!(
                    "the sandbox of {whose} ended before everything was searched for new files that start \
                     programs{places}"
                );
                let mut entry = Entry::new(Event::Server, summary);
                entry.paths.clone_from(writable);
                entry
            }
            Told::Unfinished { reason } => {
                let summary = format!("the sandbox of {whose} was not cleaned up as a whole: {reason}");
                Entry::new(Event::Server, summary)
            }
            Told::Started | Told::Failed { .. } | Told::Limited { .. } | Told::Exited { .. } => return Ok(()),
        };
        tracing::warn!("{}", entry.summary);
        entry.session = self.whose.as_ref().map(|whose| whose.session.clone());
        entry.server_name = self.whose.as_ref().map(|whose| whose.server.clone());
        entry.sandboxed = Some(true);
        entry.report_id = id;
        let recorded = self.audit.record(entry).await;
        if let Err(problem) = &recorded {
            tracing::error!(%problem, "what a sandbox has left is not on record");
        }
        recorded.map(drop)
    }
}
