//! Task that owns the current configuration and policy, and updates them.

use super::blocking::{BoundedWork, TIMEOUT, spawn_thread};
use super::file_watch::{FileWatch, WatchedPaths};
use super::read::{Current, ReadResult, RejectedFiles, reread};
use super::{Reloader, ReloaderParts, change};
use crate::health::HealthComponent;
use ironcurtain_audit::{Audit, AuditError, Entry};
use ironcurtain_config::{PolicySnapshot, SessionSettings, folders_to_watch};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum number of pending reload requests.
const QUEUE: usize = 16;

pub(super) fn start(current: Current, parts: ReloaderParts) -> Reloader {
    let (requests, inbox) = mpsc::channel(QUEUE);
    let (publish_snapshot, snapshots) = watch::channel(current.snapshot.clone());
    let (publish_settings, settings) = watch::channel(Arc::new(current.settings()));
    let task = ReloadTask {
        file_watch: FileWatch::new(),
        work: BoundedWork::default(),
        audit_troubles: parts.health.watch(),
        unrecorded: false,
        parts,
        current,
        snapshots: publish_snapshot,
        settings: publish_settings,
    };
    tokio::spawn(task.run(inbox));
    Reloader { snapshots, settings, requests }
}

struct ReloadTask {
    parts: ReloaderParts,
    file_watch: FileWatch,
    /// Runs blocking file accesses with a time limit.
    work: BoundedWork,
    current: Current,
    snapshots: watch::Sender<Arc<PolicySnapshot>>,
    settings: watch::Sender<Arc<SessionSettings>>,
    /// `true` while a change has not taken effect because it could not be recorded.
    unrecorded: bool,
    audit_troubles: watch::Receiver<BTreeMap<HealthComponent, String>>,
}

impl ReloadTask {
    async fn run(mut self, mut inbox: mpsc::Receiver<oneshot::Sender<()>>) {
        let ending = self.parts.ending.clone();
        tokio::select! {
            () = ending.cancelled() => {}
            () = self.update_loop(&mut inbox) => {}
        }
    }

    async fn update_loop(&mut self, inbox: &mut mpsc::Receiver<oneshot::Sender<()>>) {
        // Reads the files again to detect changes made before they were watched.
        self.reload().await;
        loop {
            let reply = tokio::select! {
                reply = inbox.recv() => match reply {
                    Some(reply) => Some(reply),
                    None => return,
                },
                () = self.file_watch.changed() => None,
                () = self.work.job_finished() => None,
                () = recovered(&mut self.audit_troubles), if self.unrecorded => None,
            };
            self.reload().await;
            if let Some(reply) = reply {
                // Sending fails if the caller has stopped waiting.
                let _ = reply.send(());
            }
        }
    }

    /// Reads the files again and applies their changes.
    async fn reload(&mut self) {
        // Watches before reading so that no change in between is missed.
        let (files, person) =
            (self.current.watched_paths(&self.parts.home), self.current.snapshot.home.clone());
        let find = move || WatchedPaths::find(&files, folders_to_watch(&person));
        let Some(paths) = self.work.run(find).await else {
            return self.timed_out();
        };
        let unwatched = self.file_watch.arm(paths).err();
        self.parts
            .health
            .set(HealthComponent::Watching, unwatched.map(|why| watch_error_message(&why.to_string())));
        let (home, before) = (self.parts.home.clone(), self.current.clone());
        let grants = self.parts.grants.borrow().clone();
        let reading = self.work.run(move || {
            let reading = reread(&home, &before, &grants);
            let differs = reading.now.snapshot.version != before.snapshot.version;
            let entry = differs.then(|| change::policy_entry(&before.snapshot, &reading.now.snapshot));
            (reading, entry)
        });
        let Some((ReadResult { now, rejected }, entry)) = reading.await else {
            return self.timed_out();
        };
        self.parts.health.set(HealthComponent::Reading, None);
        self.apply(now, rejected, entry).await;
    }

    fn timed_out(&self) {
        self.parts.health.set(HealthComponent::Reading, Some(timeout_message()));
        self.parts.changes.send_modify(|n| *n += 1);
    }

    async fn apply(&mut self, now: Current, rejected: RejectedFiles, snapshot: Option<Entry>) {
        let recorded = self.publish(now, snapshot).await;
        self.unrecorded = recorded.is_err();
        let trouble = |what: &str, why: Option<String>| {
            why.map(|why| {
                format!(
                    "The last change of {what} is not in force: {why}. The previous version stays in force."
                )
            })
        };
        let snapshot = rejected.snapshot.or(recorded.err().map(|problem| problem.to_string()));
        self.parts.health.set(HealthComponent::Policy, trouble("the policy", snapshot));
        self.parts.health.set(HealthComponent::Servers, trouble("the configured servers", rejected.servers));
        self.parts.health.set(HealthComponent::Settings, trouble("the settings", rejected.config));
        self.parts.changes.send_modify(|n| *n += 1);
    }

    /// Records a change, then applies it. If the change cannot be recorded, it stays pending.
    async fn publish(&mut self, now: Current, snapshot: Option<Entry>) -> Result<(), AuditError> {
        let (old, new) = (self.current.settings(), now.settings());
        if old != new {
            self.parts.audit.record(change::settings_entry(&old, &new)).await?;
            self.parts.sandbox_probe.set_backend(new.config.sandbox_backend, new.config.sandbox_policy);
            self.settings.send_replace(Arc::new(new));
        }
        (self.current.config, self.current.servers) = (now.config, now.servers);
        if let Some(entry) = snapshot {
            self.parts.audit.record(entry).await?;
            self.snapshots.send_replace(now.snapshot.clone());
            let before = std::mem::replace(&mut self.current.snapshot, now.snapshot.clone());
            tokio::spawn(record_effect(self.parts.audit.clone(), before, now.snapshot));
        }
        Ok(())
    }
}

/// Determines and records a change's effect. Runs in the background so that the change takes effect immediately.
async fn record_effect(audit: Audit, before: Arc<PolicySnapshot>, now: Arc<PolicySnapshot>) {
    if before.policy == now.policy {
        return;
    }
    let counted = spawn_thread(move || change::effect_entry(&before, &now)).await;
    let recorded = match counted {
        Ok(entry) => audit.record(entry).await.map(|_| ()).map_err(|e| e.to_string()),
        Err(problem) => Err(problem.to_string()),
    };
    if let Err(problem) = recorded {
        tracing::error!(%problem, "failed to record the effect of a changed policy");
    }
}

fn watch_error_message(why: &str) -> String {
    format!("Changes of the policy and the configuration are only detected when a session opens: {why}.")
}

fn timeout_message() -> String {
    format!(
        "Reading the policy and the configuration timed out after {} s. The previous version stays in force.",
        TIMEOUT.as_secs()
    )
}

/// Completes once the audit log is writable again.
async fn recovered(health: &mut watch::Receiver<BTreeMap<HealthComponent, String>>) {
    loop {
        if health.changed().await.is_err() {
            // The sender was dropped, so no update will arrive.
            return std::future::pending().await;
        }
        if !health.borrow_and_update().contains_key(&HealthComponent::Audit) {
            return;
        }
    }
}
