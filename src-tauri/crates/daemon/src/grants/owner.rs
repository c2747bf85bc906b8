//! The thread that owns the grants.

use super::store::{Store, StoreError};
use super::{Command, Expired, GrantTable, StandingGrant};
use crate::clock::now_ms;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// The time for which the owner sleeps at most. The wall clock may be set, or the machine suspended, meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(20);

struct Owner {
    store: Store,
    grants: Vec<StandingGrant>,
    version: u64,
    publish: watch::Sender<Arc<GrantTable>>,
    expired: UnboundedSender<Expired>,
}

pub(super) fn start(
    database: &Path,
    inbox: mpsc::Receiver<Command>,
    expired: UnboundedSender<Expired>,
) -> Result<watch::Receiver<Arc<GrantTable>>, StoreError> {
    let store = Store::open(database)?;
    let grants = store.load()?;
    let (publish, table) = watch::channel(Arc::default());
    let mut owner = Owner { store, grants, version: 0, publish, expired };
    owner.expire();
    owner.changed();
    std::thread::Builder::new()
        .name("grants".to_owned())
        .spawn(move || owner.run(&inbox))
        .map_err(|e| StoreError::Thread(e.to_string()))?;
    Ok(table)
}

impl Owner {
    fn run(mut self, inbox: &mpsc::Receiver<Command>) {
        loop {
            match inbox.recv_timeout(self.sleep()) {
                Ok(command) => self.obey(command),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            self.expire();
        }
    }

    fn obey(&mut self, command: Command) {
        // A caller that went away has what it asked for done all the same.
        match command {
            Command::Add(grants, reply) => {
                let _ = reply.send(self.add(grants));
            }
            Command::Remove(id, reply) => {
                let _ = reply.send(self.remove(&id));
            }
            Command::EndSession(session) => {
                self.grants.retain(|g| g.subject.session.as_deref() != Some(&session));
                self.changed();
            }
            Command::Used(ids) => self.used(&ids),
        }
    }

    fn add(&mut self, grants: Vec<StandingGrant>) -> Result<u64, StoreError> {
        self.store.insert(&grants)?;
        self.grants.extend(grants);
        self.changed();
        Ok(self.version)
    }

    fn remove(&mut self, id: &str) -> Result<Option<(StandingGrant, u64)>, StoreError> {
        let Some(at) = self.grants.iter().position(|g| g.id == id) else { return Ok(None) };
        // First it stops to apply, then it is forgotten.
        let grant = self.grants.remove(at);
        self.changed();
        self.store.delete(id)?;
        Ok(Some((grant, self.version)))
    }

    fn used(&mut self, ids: &[String]) {
        let now = now_ms();
        for grant in self.grants.iter_mut().filter(|g| ids.contains(&g.id)) {
            grant.uses += 1;
            grant.last_used_ms = Some(now);
            if let Err(problem) = self.store.note_use(grant) {
                tracing::warn!(%problem, grant = grant.id, "a use was not counted in the database");
            }
        }
        // The version stays: what is granted has not changed.
        self.publish();
    }

    /// Drops what has ended by the clock, and tells of it once it is gone.
    fn expire(&mut self) {
        let now = now_ms();
        let (ended, live): (Vec<_>, Vec<_>) = std::mem::take(&mut self.grants)
            .into_iter()
            .partition(|g| g.expires_ms.is_some_and(|at| at <= now));
        self.grants = live;
        if ended.is_empty() {
            return;
        }
        self.changed();
        for grant in &ended {
            if let Err(problem) = self.store.delete(&grant.id) {
                tracing::warn!(%problem, grant = grant.id, "an expired grant stays in the database until the next start");
            }
            // Without a listener the trusted process is ending.
            let _ = self.expired.send(Expired(grant.clone()));
        }
    }

    fn sleep(&self) -> Duration {
        let next = self.grants.iter().filter_map(|g| g.expires_ms).min();
        let left = next.map(|at| Duration::from_millis(at.saturating_sub(now_ms())));
        left.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP))
    }

    fn changed(&mut self) {
        self.version += 1;
        self.publish();
    }

    fn publish(&self) {
        self.publish
            .send_replace(Arc::new(GrantTable { version: self.version, grants: self.grants.clone() }));
    }
}
