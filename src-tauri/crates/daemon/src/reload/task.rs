//! The owner of what is in force.

use super::blocking::{PATIENCE, Waiting, aside};
use super::file_watch::{Places, Watching};
use super::read::{Current, Refused, Weighed, files, weigh};
use super::{Means, Reloader, Settings, change};
use crate::health::Concern;
use crate::policy_snapshot::PolicySnapshot;
use crate::protection::watched;
use ironcurtain_audit::{Audit, AuditError, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// How many may wait for a look at the files.
const QUEUE: usize = 16;

pub(super) fn start(current: Current, means: Means) -> Reloader {
    let (looks, inbox) = mpsc::channel(QUEUE);
    let (publish_snapshot, snapshots) = watch::channel(current.snapshot.clone());
    let (publish_settings, settings) = watch::channel(Arc::new(current.settings()));
    let task = ReloadTask {
        watching: Watching::new(),
        waiting: Waiting::default(),
        audit_troubles: means.health.watch(),
        unrecorded: false,
        means,
        current,
        snapshots: publish_snapshot,
        settings: publish_settings,
    };
    tokio::spawn(task.run(inbox));
    Reloader { snapshots, settings, looks }
}

struct ReloadTask {
    means: Means,
    watching: Watching,
    /// For looks at the files.
    waiting: Waiting,
    current: Current,
    snapshots: watch::Sender<Arc<PolicySnapshot>>,
    settings: watch::Sender<Arc<Settings>>,
    /// A change could not be put on record, and waits for that.
    unrecorded: bool,
    audit_troubles: watch::Receiver<BTreeMap<Concern, String>>,
}

impl ReloadTask {
    async fn run(mut self, mut inbox: mpsc::Receiver<oneshot::Sender<()>>) {
        let ending = self.means.ending.clone();
        tokio::select! {
            () = ending.cancelled() => {}
            () = self.keep(&mut inbox) => {}
        }
    }

    async fn keep(&mut self, inbox: &mut mpsc::Receiver<oneshot::Sender<()>>) {
        // What changed since the first look is noticed by a second one.
        self.follow().await;
        loop {
            let asked = tokio::select! {
                asked = inbox.recv() => match asked {
                    Some(asked) => Some(asked),
                    None => return,
                },
                () = self.watching.changed() => None,
                () = self.waiting.over() => None,
                () = recovered(&mut self.audit_troubles), if self.unrecorded => None,
            };
            self.follow().await;
            if let Some(asked) = asked {
                // Who no longer waits has gone.
                let _ = asked.send(());
            }
        }
    }

    /// Makes what the files say now come into force.
    async fn follow(&mut self) {
        // First the watch, then the look: what changes in between is noticed.
        let (files, person) = (files(&self.means.home), self.current.snapshot.home.clone());
        let find = move || Places::find(&files, watched(&person));
        let Some(places) = self.waiting.for_some_time(find).await else {
            return self.looked_in_vain();
        };
        let unwatched = self.watching.arm(places).err();
        self.means.health.set(Concern::Watching, unwatched.map(|why| not_noticed(&why)));
        let (home, before) = (self.means.home.clone(), self.current.clone());
        let grants = self.means.grants.borrow().clone();
        let weighed = self.waiting.for_some_time(move || {
            let weighed = weigh(&home, &before, &grants);
            let differs = weighed.now.snapshot.version != before.snapshot.version;
            let entry = differs.then(|| change::of_policy(&before.snapshot, &weighed.now.snapshot));
            (weighed, entry)
        });
        let Some((Weighed { now, refused }, entry)) = weighed.await else {
            return self.looked_in_vain();
        };
        self.means.health.set(Concern::Reading, None);
        self.take(now, refused, entry).await;
    }

    fn looked_in_vain(&self) {
        self.means.health.set(Concern::Reading, Some(not_read()));
        self.means.changes.send_modify(|n| *n += 1);
    }

    async fn take(&mut self, now: Current, refused: Refused, snapshot: Option<Entry>) {
        let recorded = self.publish(now, snapshot).await;
        self.unrecorded = recorded.is_err();
        let trouble = |what: &str, why: Option<String>| {
            why.map(|why| {
                format!(
                    "The last change of {what} is not in force: {why}. What was in force before it stays."
                )
            })
        };
        let snapshot = refused.snapshot.or(recorded.err().map(|problem| problem.to_string()));
        self.means.health.set(Concern::Policy, trouble("the policy", snapshot));
        self.means.health.set(Concern::Servers, trouble("the configured servers", refused.servers));
        self.means.health.set(Concern::Settings, trouble("the settings", refused.config));
        self.means.changes.send_modify(|n| *n += 1);
    }

    /// Puts it on record, then in force. What cannot be put on record waits.
    async fn publish(&mut self, now: Current, snapshot: Option<Entry>) -> Result<(), AuditError> {
        let (old, new) = (self.current.settings(), now.settings());
        if old != new {
            self.means.audit.record(change::of_settings(&old, &new)).await?;
            self.means.machine.choose(new.config.sandbox_backend, new.config.sandbox_policy);
            self.settings.send_replace(Arc::new(new));
        }
        (self.current.config, self.current.servers) = (now.config, now.servers);
        if let Some(entry) = snapshot {
            self.means.audit.record(entry).await?;
            self.snapshots.send_replace(now.snapshot.clone());
            let before = std::mem::replace(&mut self.current.snapshot, now.snapshot.clone());
            tokio::spawn(note_effect(self.means.audit.clone(), before, now.snapshot));
        }
        Ok(())
    }
}

/// Nobody waits for it: a change applies whether it is counted or not.
async fn note_effect(audit: Audit, before: Arc<PolicySnapshot>, now: Arc<PolicySnapshot>) {
    if before.policy == now.policy {
        return;
    }
    let counted = aside(move || change::effect(&before, &now)).await;
    let recorded = match counted {
        Ok(entry) => audit.record(entry).await.map(|_| ()).map_err(|e| e.to_string()),
        Err(problem) => Err(problem.to_string()),
    };
    if let Err(problem) = recorded {
        tracing::error!(%problem, "what another policy comes to is not on record");
    }
}

fn not_noticed(why: &str) -> String {
    format!("Changes of the policy and the configuration are noticed only when a session begins: {why}.")
}

fn not_read() -> String {
    format!(
        "The policy and the configuration could not be read within {} seconds. What was in force before stays.",
        PATIENCE.as_secs()
    )
}

/// Completes when the audit log could be written again.
async fn recovered(health: &mut watch::Receiver<BTreeMap<Concern, String>>) {
    loop {
        if health.changed().await.is_err() {
            // Nothing is told any more.
            return std::future::pending().await;
        }
        if !health.borrow_and_update().contains_key(&Concern::Audit) {
            return;
        }
    }
}
