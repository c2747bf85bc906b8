//! The newest entry of the record as the keyring knows it, so that a log that was cut shows although the file that knows it was cut
//! too.
//!
//! - Off the path of calls: it is written now and then, and at the end, after the entry is on the disk.
//! - Nobody is asked to unlock a keyring for it. What it knows may be older than the log, never newer.
//! - INVARIANT: what the keyring knows is replaced only after the log that was opened has been compared with it.

use crate::health::{Concern, Health};
use ironcurtain_audit::{Audit, Entry, Event, KnownHead, Written, check_written};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at what is new.
const EVERY: Duration = Duration::from_secs(60);

/// The time that the keyring may take where IronCurtain waits for it, at its start and its end.
const BOUND: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Known {
    entries: u64,
    head: String,
}

/// The newest entry that the keyring knows; nothing where it knows none, or does not say. Waits for the keyring.
///
/// # Errors
/// [`SecretError`], when it cannot be asked.
pub fn known(home: &Home) -> Result<Option<Written>, SecretError> {
    let Some(keyring) = Keyring::open_unlocked(Shelf::Record)? else { return Ok(None) };
    in_keyring(&keyring, home)
}

/// Returns the newest entry that the keyring knows, if the head file does not name one and the keyring answers at once.
pub(crate) async fn if_needed(home: &Home) -> Option<Written> {
    if !home.has_keyring || KnownHead::read(&home.audit_head()).problem().is_none() {
        return None;
    }
    let of = home.clone();
    tokio::time::timeout(BOUND, in_time(move || known(&of))).await.ok()?.ok()?
}

/// Keeps the newest entry in the keyring of a home.
#[derive(Debug, Clone)]
pub(crate) struct RecordHead {
    home: Home,
    audit: Audit,
    health: Health,
    /// The log has been compared with what the keyring knew. Until then that is not replaced.
    compared: Arc<AtomicBool>,
}

impl RecordHead {
    pub(crate) fn new(home: Home, audit: Audit, health: Health) -> Self {
        Self { home, audit, health, compared: Arc::default() }
    }

    /// Compares the log with what the keyring knows, and keeps what is new from then on, as soon as the keyring answers.
    pub(crate) async fn follow(self) {
        if !self.home.has_keyring {
            return;
        }
        let mut kept = None;
        loop {
            let (written, _) = self.audit.standing();
            if kept.as_ref() != Some(&written) {
                // Without a keyring, or with a locked one, it is tried again.
                kept = self.keep().await.ok().flatten();
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Keeps the newest entry, when the trusted process ends.
    pub(crate) async fn end(&self) {
        if self.home.has_keyring {
            // After the bound, what the keyring knows is a little older.
            let _ = tokio::time::timeout(BOUND, self.keep()).await;
        }
    }

    /// Keeps the newest entry; nothing where the keyring is locked.
    async fn keep(&self) -> Result<Option<Written>, SecretError> {
        if !self.compared.load(Ordering::Acquire) && !self.compare().await? {
            return Ok(None);
        }
        let (written, stands) = self.audit.standing();
        self.audit.settle().await;
        if stands.is_err() {
            return Ok(None);
        }
        let home = self.home.clone();
        in_time(move || {
            let Some(keyring) = Keyring::open_unlocked(Shelf::Record)? else { return Ok(None) };
            let known = Known { entries: written.entries, head: written.head.clone() };
            let text =
                serde_json::to_string(&known).map_err(|problem| SecretError::Failed(problem.to_string()))?;
            keyring.set(&name(&home)?, &Secret::new(text))?;
            Ok(Some(written))
        })
        .await
    }

    /// Reports a log that was opened without an entry that the keyring knows. `false` where the keyring is locked.
    async fn compare(&self) -> Result<bool, SecretError> {
        let of = self.home.clone();
        let known = in_time(move || match Keyring::open_unlocked(Shelf::Record)? {
            Some(keyring) => in_keyring(&keyring, &of).map(Some),
            None => Ok(None),
        });
        let Some(known) = known.await? else { return Ok(false) };
        if let Some(known) = known {
            match self.missing(&known).await {
                Some(found) => self.report(&known, &found).await,
                // The keyring knows what the head file did not.
                None => self.health.set(Concern::Record, None),
            }
        }
        self.compared.store(true, Ordering::Release);
        Ok(true)
    }

    /// Returns what the log had in place of an entry that the keyring knows.
    async fn missing(&self, known: &Written) -> Option<String> {
        let opened = self.audit.opened_at();
        if known.entries > opened.entries || (known.entries == opened.entries && known.head != opened.head) {
            return Some(format!("there were {}", opened.entries));
        }
        self.audit.unknown_end()?;
        // Without a head file, an entry before the last one may be another one, too.
        let (dir, known) = (self.home.audit(), known.clone());
        let checked = tokio::task::spawn_blocking(move || check_written(&dir, &known)).await;
        match checked {
            Ok(Ok(checked)) => checked.problem,
            Ok(Err(problem)) => Some(format!("it cannot be read: {problem}")),
            Err(problem) => Some(format!("it cannot be read: {problem}")),
        }
    }

    async fn report(&self, known: &Written, found: &str) {
        let text = format!(
            "the record was cut or exchanged while nobody wrote it: the keyring knows {} entries up to {}, and {found}",
            known.entries, known.head
        );
        self.health.set(Concern::Record, Some(text.clone()));
        if let Err(problem) = self.audit.record(Entry::new(Event::Daemon, text)).await {
            tracing::error!(%problem, "a cut of the record is not on record");
        }
    }
}

fn in_keyring(keyring: &Keyring, home: &Home) -> Result<Option<Written>, SecretError> {
    let secret = match keyring.get(&name(home)?) {
        Err(SecretError::Missing(_)) => return Ok(None),
        found => found?,
    };
    let known: Known =
        serde_json::from_str(secret.reveal()).map_err(|problem| SecretError::Failed(problem.to_string()))?;
    Ok(Some(Written { entries: known.entries, head: known.head }))
}

/// Each home has its own.
fn name(home: &Home) -> Result<SecretName, SecretError> {
    let place = Sha256::digest(home.state.as_os_str().as_encoded_bytes());
    let place: String = place.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(SecretName::try_from(format!("record-{place}").as_str())?)
}
