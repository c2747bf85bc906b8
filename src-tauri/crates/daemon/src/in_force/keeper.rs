//! The owner of what is in force.

use super::aside::{PATIENCE, Waiting, aside};
use super::read::{Current, Refused, Weighed, files, weigh};
use super::watching::{Places, Watching};
use super::{InForce, Means, Settings, change};
use crate::law::Law;
use crate::protection::watched;
use crate::troubles::Concern;
use ironcurtain_audit::{Audit, AuditError, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// How many may wait for a look at the files.
const QUEUE: usize = 16;

pub(super) fn start(current: Current, means: Means) -> InForce {
    let (looks, inbox) = mpsc::channel(QUEUE);
    let (publish_law, laws) = watch::channel(current.law.clone());
    let (publish_settings, settings) = watch::channel(Arc::new(current.settings()));
    let keeper = Keeper {
        watching: Watching::new(),
        waiting: Waiting::default(),
        audit_troubles: means.troubles.watch(),
        unrecorded: false,
        means,
        current,
        laws: publish_law,
        settings: publish_settings,
    };
    tokio::spawn(keeper.run(inbox));
    InForce { laws, settings, looks }
}

struct Keeper {
    means: Means,
    watching: Watching,
    /// For looks at the files.
    waiting: Waiting,
    current: Current,
    laws: watch::Sender<Arc<Law>>,
    settings: watch::Sender<Arc<Settings>>,
    /// A change could not be put on record, and waits for that.
    unrecorded: bool,
    audit_troubles: watch::Receiver<BTreeMap<Concern, String>>,
}

impl Keeper {
    async fn run(mut self, mut inbox: mpsc::Receiver<oneshot::Sender<()>>) {
        let mut ending = self.means.ending.clone();
        tokio::select! {
            _ = ending.wait_for(|ending| *ending) => {}
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
        let (files, person) = (files(&self.means.home), self.current.law.home.clone());
        let find = move || Places::find(&files, watched(&person));
        let Some(places) = self.waiting.for_some_time(find).await else {
            return self.looked_in_vain();
        };
        let unwatched = self.watching.arm(places).err();
        self.means.troubles.set(Concern::Watching, unwatched.map(|why| not_noticed(&why)));
        let (home, before) = (self.means.home.clone(), self.current.clone());
        let grants = self.means.grants.borrow().clone();
        let weighed = self.waiting.for_some_time(move || {
            let weighed = weigh(&home, &before, &grants);
            let differs = weighed.now.law.version != before.law.version;
            let entry = differs.then(|| change::of_law(&before.law, &weighed.now.law));
            (weighed, entry)
        });
        let Some((Weighed { now, refused }, entry)) = weighed.await else {
            return self.looked_in_vain();
        };
        self.means.troubles.set(Concern::Reading, None);
        self.take(now, refused, entry).await;
    }

    fn looked_in_vain(&self) {
        self.means.troubles.set(Concern::Reading, Some(not_read()));
        self.means.changes.send_modify(|n| *n += 1);
    }

    async fn take(&mut self, now: Current, refused: Refused, law: Option<Entry>) {
        let recorded = self.publish(now, law).await;
        self.unrecorded = recorded.is_err();
        let trouble = |what: &str, why: Option<String>| {
            why.map(|why| {
                format!(
                    "The last change of {what} is not in force: {why}. What was in force before it stays."
                )
            })
        };
        let law = refused.law.or(recorded.err().map(|problem| problem.to_string()));
        self.means.troubles.set(Concern::Policy, trouble("the policy", law));
        self.means.troubles.set(Concern::Servers, trouble("the configured servers", refused.servers));
        self.means.troubles.set(Concern::Settings, trouble("the settings", refused.config));
        self.means.changes.send_modify(|n| *n += 1);
    }

    /// Puts it on record, then in force. What cannot be put on record waits.
    async fn publish(&mut self, now: Current, law: Option<Entry>) -> Result<(), AuditError> {
        let (old, new) = (self.current.settings(), now.settings());
        if old != new {
            self.means.audit.record(change::of_settings(&old, &new)).await?;
            self.means.machine.choose(new.config.sandbox_backend, new.config.sandbox_policy);
            self.settings.send_replace(Arc::new(new));
        }
        (self.current.config, self.current.servers) = (now.config, now.servers);
        if let Some(entry) = law {
            self.means.audit.record(entry).await?;
            self.laws.send_replace(now.law.clone());
            let before = std::mem::replace(&mut self.current.law, now.law.clone());
            tokio::spawn(note_effect(self.means.audit.clone(), before, now.law));
        }
        Ok(())
    }
}

/// Nobody waits for it: a change applies whether it is counted or not.
async fn note_effect(audit: Audit, before: Arc<Law>, now: Arc<Law>) {
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
async fn recovered(troubles: &mut watch::Receiver<BTreeMap<Concern, String>>) {
    loop {
        if troubles.changed().await.is_err() {
            // Nothing is told any more.
            return std::future::pending().await;
        }
        if !troubles.borrow_and_update().contains_key(&Concern::Audit) {
            return;
        }
    }
}
