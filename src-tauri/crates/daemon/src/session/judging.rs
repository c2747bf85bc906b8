//! Judging a call as things stand, and what its leave is worth at any later moment.
//!
//! - Nothing is judged but what the server would be shown and sent: what cannot be given without uncovering something
//!   protected is denied here.

use super::Session;
use super::prepare::{Prepared, ToolCall};
use crate::grants::StandingGrant;
use crate::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Asked, Context, Denial, Grant, OpenFolder, Permit, Verdict, judge};
use std::sync::PoisonError;
use tokio::sync::oneshot::{self, error::TryRecvError};

/// What the judge said, and about what.
pub(super) struct Judged {
    pub(super) prepared: Option<Prepared>,
    pub(super) verdict: Verdict,
    /// The grants it was judged with, and the version of their table.
    pub(super) grants: Vec<StandingGrant>,
    pub(super) version: u64,
}

/// Leave for a call, with what it was given for.
pub(super) struct Leave {
    pub(super) prepared: Prepared,
    pub(super) permit: Permit,
    /// What must be shown for this call alone.
    pub(super) needs: Vec<Need>,
    /// What standing grants show.
    pub(super) relies_on: Vec<Need>,
    /// What the person said yes to for this call.
    pub(super) approved: Vec<Asked>,
    pub(super) version: u64,
}

impl Leave {
    /// Whether it is all the same to the call what is granted and mounted.
    pub(super) fn needs_nothing(&self) -> bool {
        self.needs.is_empty() && self.relies_on.is_empty()
    }
}

impl Session {
    pub(super) fn judge(&self, tool: &ToolCall, approved: &[Asked]) -> Judged {
        let table = self.shared.grants.now();
        let grants: Vec<StandingGrant> =
            table.grants.iter().filter(|g| self.may_use(&g.subject)).cloned().collect();
        let law = &self.shared.law;
        let (prepared, verdict) = match tool.prepare(&self.config.name, law, &self.resolver) {
            Err(denial) => (None, Verdict::Deny(denial)),
            Ok(prepared) => {
                let verdict = self.uncovers(&prepared).map_or_else(
                    || {
                        let usable: Vec<Grant> = grants.iter().map(StandingGrant::for_judging).collect();
                        let context = Context {
                            sandbox: Some(&self.sandbox),
                            sandbox_servers: std::slice::from_ref(&self.config.name),
                            protected: &law.protected,
                            gates: &law.gates,
                            grants: &usable,
                            approved,
                        };
                        judge(&law.policy, &context, &prepared.call)
                    },
                    Verdict::Deny,
                );
                (Some(prepared), verdict)
            }
        };
        Judged { prepared, verdict, grants, version: table.version }
    }

    /// What the call cannot be given without showing its server something protected, too.
    fn uncovers(&self, prepared: &Prepared) -> Option<Denial> {
        if !self.sandboxed() {
            return None;
        }
        let protected = self.shared.law.protected.paths();
        let opens = || prepared.opens(&self.sandbox, self.config.file_writes, protected);
        prepared.exposes(protected).map(exposes).or_else(|| opens().map(|(f, p)| opens_too_much(&f, p)))
    }

    /// What a permitted call needs, and what of it standing grants show.
    pub(super) fn leave(
        &self,
        prepared: Prepared,
        permit: Permit,
        grants: &[StandingGrant],
        version: u64,
        approved: Vec<Asked>,
    ) -> Leave {
        let all = prepared.needs(&self.sandbox, self.config.file_writes);
        let applied = self.server.applied();
        let opens = |n: &Need| {
            let shows = |o: &OpenFolder| o.path.contains(&n.path) && (o.writable || !n.writable);
            self.opened.iter().any(shows) && applied.shows(n)
        };
        let (relies_on, needs) = all.into_iter().partition(|n| grants.iter().any(|g| g.shows(n)) || opens(n));
        // A server that opted out of the sandbox sees everything as it is.
        let relies_on = if self.sandboxed() { relies_on } else { Vec::new() };
        Leave { prepared, permit, needs, relies_on, approved, version }
    }

    /// Whether the server sees everything the call needs right now, as it is now.
    pub(super) fn shows(&self, leave: &Leave) -> bool {
        let applied = self.server.applied();
        if !leave.prepared.call.paths().all(|(_, _, path)| applied.is_current(path)) {
            return false;
        }
        if leave.needs_nothing() {
            return true;
        }
        leave.needs.is_empty()
            && applied.grants_version >= leave.version
            && leave.relies_on.iter().all(|need| applied.shows(need))
            && leave.prepared.first_of(&applied.failed).is_none()
    }

    /// Whether every call that had to wait for the server is forwarded.
    pub(super) fn nobody_in_line(&self) -> bool {
        let mut last = self.last_in_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_mut().is_some_and(|last| matches!(last.try_recv(), Err(TryRecvError::Empty))) {
            return false;
        }
        // What has completed must not be waited for again.
        *last = None;
        true
    }

    /// Stands in the line of calls that wait for the server: what to wait for, and what the next one waits for.
    pub(super) fn stand_in_line(&self) -> (Option<oneshot::Receiver<()>>, oneshot::Sender<()>) {
        let (sender, receiver) = oneshot::channel();
        let mut last = self.last_in_line.lock().unwrap_or_else(PoisonError::into_inner);
        (last.replace(receiver), sender)
    }

    /// Completes when the call needs no question any more, because of an answer to another one.
    pub(super) async fn settled(&self, tool: &ToolCall) {
        let mut table = self.shared.grants.watch();
        loop {
            if table.changed().await.is_err() {
                return std::future::pending().await;
            }
            if !matches!(self.judge(tool, &[]).verdict, Verdict::Escalate(_)) {
                return;
            }
        }
    }
}

fn opens_too_much(folder: &CanonicalPath, inside: &CanonicalPath) -> Denial {
    Denial {
        rule: "structural-protected-path".into(),
        reason: format!(
            "to make or remove a name in `{folder}` the whole folder must be open for the server, and it holds the protected `{inside}`; choose a folder in it"
        )
        .into(),
    }
}

fn exposes((folder, inside): (&CanonicalPath, &CanonicalPath)) -> Denial {
    Denial {
        rule: "structural-protected-path".into(),
        reason: format!(
            "`{folder}` cannot be opened as a whole, because it holds the protected `{inside}`; name a folder or file in it"
        )
        .into(),
    }
}
