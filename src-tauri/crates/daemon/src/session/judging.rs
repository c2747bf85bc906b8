//! Judging a call of a session as things stand, and what its leave is worth at any later moment.

use super::Session;
use super::prepare::ToolCall;
use crate::grants::StandingGrant;
use crate::judging::{self, Setting};
use crate::mounts::Need;
use crate::prepared::Prepared;
use ironcurtain_policy::{Asked, OpenFolder, Permit, Verdict};
use std::sync::{Arc, PoisonError};
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
    /// Everything a call is judged with right now.
    fn setting(&self, grants: &[StandingGrant], approved: &[Asked]) -> Arc<Setting> {
        Arc::new(Setting {
            law: self.shared.law.clone(),
            server: self.config.name.clone(),
            contained: Setting::contained(&self.config),
            sandbox: Some(self.sandbox.clone()),
            resolver: self.resolver.clone(),
            grants: grants.iter().map(StandingGrant::for_judging).collect(),
            approved: approved.to_vec(),
        })
    }

    pub(super) async fn judge(&self, tool: &ToolCall, approved: &[Asked]) -> Judged {
        let table = self.shared.grants.now();
        let grants: Vec<StandingGrant> =
            table.grants.iter().filter(|g| self.may_use(&g.subject)).cloned().collect();
        let setting = self.setting(&grants, approved);
        let (prepared, verdict) = match judging::prepare(&setting, &tool.tool, &tool.arguments).await {
            Err(denial) => (None, Verdict::Deny(denial)),
            Ok(prepared) => {
                let verdict = setting.judge(&prepared);
                (Some(prepared), verdict)
            }
        };
        Judged { prepared, verdict, grants, version: table.version }
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
        let all = prepared.needs(Some(&self.sandbox), self.config.file_writes);
        let applied = self.server.applied();
        let opens = |n: &Need| {
            let shows = |o: &OpenFolder| o.path.contains(&n.path) && (o.writable || !n.writable);
            self.opened.iter().any(shows) && applied.shows(n)
        };
        let (relies_on, needs) = all.into_iter().partition(|n| grants.iter().any(|g| g.shows(n)) || opens(n));
        // A server that opted out of the sandbox sees everything as it is.
        let relies_on = if self.sandboxed { relies_on } else { Vec::new() };
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
            if !matches!(self.judge(tool, &[]).await.verdict, Verdict::Escalate(_)) {
                return;
            }
        }
    }
}
