//! Approvals for a single call, which are listed among the grants until the call ends.
//!
//! - INVARIANT: such a grant ends when the response arrives, when the call is cancelled, when the policy denies the
//!   call, or when the user revokes the grant. It ends after [`MAX_DURATION`] even if the server never answers.

use super::Session;
use ironcurtain_audit::Event;
use ironcurtain_consent::{Lifetime, RequestedAccess};
use ironcurtain_grants::{Files, Granted, StandingGrant};
use ironcurtain_paths::PathKind;
use ironcurtain_policy::{AccessSet, GrantKind};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Maximum lifetime of a one-time grant. Equals the shortest lifetime of other grants.
pub(super) const MAX_DURATION: Duration = Duration::from_secs(15 * 60);

/// A session's one-time grants.
#[derive(Debug, Clone, Default)]
pub(super) struct OneTimeGrants(Arc<Mutex<BTreeMap<String, OpenGrant>>>);

#[derive(Debug)]
struct OpenGrant {
    grant: StandingGrant,
    end: Arc<watch::Sender<bool>>,
}

/// One call's one-time grants. They are listed until this value is dropped.
#[derive(Debug)]
pub(super) struct OneTimeGrant {
    all: OneTimeGrants,
    grants: Vec<StandingGrant>,
    end: watch::Receiver<bool>,
}

impl OneTimeGrants {
    /// Adds grants to the list.
    fn open(&self, grants: Vec<StandingGrant>) -> OneTimeGrant {
        let (end, ended) = watch::channel(false);
        let end = Arc::new(end);
        let opened =
            |grant: &StandingGrant| (grant.id.clone(), OpenGrant { grant: grant.clone(), end: end.clone() });
        self.table().extend(grants.iter().map(opened));
        OneTimeGrant { all: self.clone(), grants, end: ended }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, OpenGrant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OneTimeGrant {
    /// Returns the grants of the call.
    pub(super) fn grants(&self) -> &[StandingGrant] {
        &self.grants
    }

    /// Completes when the grants must end, because they were revoked or [`MAX_DURATION`] has passed.
    pub(super) async fn wait_for_end(&mut self) {
        // The list holds the sender at least until `self` is dropped.
        let closed = async { self.end.wait_for(|end| *end).await.is_ok() };
        // The grants end in both cases, so the result is ignored.
        let _ = tokio::time::timeout(MAX_DURATION, closed).await;
    }
}

impl Drop for OneTimeGrant {
    fn drop(&mut self) {
        let mut table = self.all.table();
        self.grants.iter().for_each(|grant| drop(table.remove(&grant.id)));
    }
}

impl Session {
    /// Returns the session's current one-time grants.
    #[must_use]
    pub fn one_time_grants(&self) -> Vec<StandingGrant> {
        self.one_time.table().values().map(|open| open.grant.clone()).collect()
    }

    /// Revokes all grants of the call that the grant with this id belongs to. Returns the grant once the server has
    /// lost the access, or `None` if no grant has this id.
    pub async fn revoke_one_time(&self, id: &str) -> Option<StandingGrant> {
        let (grant, end) = {
            let table = self.one_time.table();
            let open = table.get(id)?;
            (open.grant.clone(), open.end.clone())
        };
        end.send_replace(true);
        // The receiver is dropped once the call has released its access.
        end.closed().await;
        // The server's actor handles this command after the release. If the session closes first, all access is removed
        // anyway.
        let _ = self.server.lease(Vec::new(), Vec::new()).await;
        Some(grant)
    }

    /// Adds access that was approved for one call to the list of one-time grants.
    pub(super) fn add_one_time(&self, opened: Vec<Granted>) -> io::Result<OneTimeGrant> {
        let created_ms = ironcurtain_audit::clock::now_ms();
        let length = u64::try_from(MAX_DURATION.as_millis()).unwrap_or(u64::MAX);
        let grant = |what| {
            Ok(StandingGrant {
                id: ironcurtain_paths::random_name()?,
                subject: self.principal.subject(),
                what,
                lifetime: Lifetime::Once,
                expires_ms: Some(created_ms.saturating_add(length)),
                created_ms,
                last_used_ms: Some(created_ms),
                uses: 1,
                provenance: "a call that its server has not answered yet".to_owned(),
            })
        };
        let grants = opened.into_iter().map(grant).collect::<io::Result<_>>()?;
        let once = self.one_time.open(grants);
        self.services.changed();
        Ok(once)
    }

    /// Records that grants ended before the response arrived, with the reason.
    pub(super) async fn record_early_end(&self, tool: &str, ended_grants: Vec<StandingGrant>, why: &str) {
        for grant in ended_grants {
            let mut entry = self.entry(Event::Revoked, format!("one-time access was closed: {why}"));
            entry.tool_name = Some(tool.to_owned());
            grant.what.add_to_entry(&mut entry);
            entry.grant_id = Some(grant.id);
            if let Err(problem) = self.services.audit.record(entry).await {
                tracing::error!(%problem, "failed to record that one-time access was closed");
            }
        }
        self.services.changed();
    }
}

/// Returns the one-time grant for a requested access.
pub(super) fn to_grant(requested: &RequestedAccess) -> Granted {
    let kind = if requested.target == PathKind::Folder { GrantKind::Tree } else { GrantKind::File };
    Granted::Files(Files { path: requested.path.clone(), kind, access: AccessSet::only(requested.access) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_grants::GrantSubject;
    use ironcurtain_paths::CanonicalPath;
    use tokio::time::Instant;

    fn grant(id: &str) -> StandingGrant {
        let path = CanonicalPath::assume_canonical("/p/a").unwrap();
        let access = AccessSet { read: true, ..AccessSet::default() };
        StandingGrant {
            id: id.to_owned(),
            subject: GrantSubject {
                client: "c".into(),
                client_name: "c".into(),
                server: "s".into(),
                session: Some("1".into()),
            },
            what: Granted::Files(Files { path, kind: GrantKind::File, access }),
            lifetime: Lifetime::Once,
            expires_ms: None,
            created_ms: 0,
            last_used_ms: None,
            uses: 0,
            provenance: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_one_time_grant_ends_when_closed_or_expired() {
        let all = OneTimeGrants::default();
        let (mut one, mut other) = (all.open(vec![grant("a"), grant("b")]), all.open(vec![grant("c")]));
        let began = Instant::now();
        other.wait_for_end().await;
        assert!(began.elapsed() >= MAX_DURATION && began.elapsed() < MAX_DURATION + Duration::from_secs(1));
        let end = all.table().get("b").unwrap().end.clone();
        end.send_replace(true);
        let began = Instant::now();
        one.wait_for_end().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(all.table().len(), 3);
        drop(one);
        end.closed().await;
        assert_eq!(all.table().keys().collect::<Vec<_>>(), ["c"]);
    }
}
